#include "backend/vulkan/vulkan_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/device.h"
#include "backend/vulkan/command_cache.h"
#include "backend/vulkan/command_recorder.h"
#include "backend/vulkan/speed.h"
#include "backend/vulkan/step_data.h"
#include "backend/vulkan/vulkan_tensors.h"
#include "kernels/top_k.h"
#include "qwench/error.h"

namespace qwench {
namespace {

// A matrix is read back at once, or this much of it at a time.
constexpr uint64_t kReadBytes = uint64_t{64} << 20;
constexpr uint64_t kLeastResults = 65536;
constexpr uint64_t kLargestParts = uint64_t{64} << 20;
// Of shaders/top_k.comp: the host ranks the row.
constexpr TokenId kNotRanked = -2;

const VulkanMatrix& vulkan(const Matrix& matrix) { return static_cast<const VulkanMatrix&>(matrix); }
const VulkanWeight* vulkan(const Weight* weight) { return static_cast<const VulkanWeight*>(weight); }
const VulkanKvCache& vulkan(const KvCache& cache) { return static_cast<const VulkanKvCache&>(cache); }

class VulkanBackend final : public Backend {
 public:
  VulkanBackend(std::shared_ptr<VulkanDevice> device, const VulkanOptions& options, ThreadPool& pool)
      : device_(std::move(device)),
        pipelines_(device_),
        loader_(device_, pool, options.keeps_f32,
                options.gpu_layers.value_or(std::numeric_limits<int>::max())),
        step_(device_) {
    if (options.gpu_layers) stream_ = std::make_unique<WeightStream>(device_, *options.gpu_layers);
    commands_ = std::make_unique<CommandCache>(device_, pipelines_, stream_.get());
    pending_.reserve(4096);
    reserve_results(kLeastResults);
  }

  std::string description() const override {
    return fmt::format("Vulkan ({}, {})", device_->info().name, device_->info().type);
  }

  std::unique_ptr<Matrix> allocate(int capacity, int cols) override {
    return std::make_unique<VulkanMatrix>(*device_, capacity, cols);
  }

  std::unique_ptr<Weight> load(const TensorView& tensor, DType dtype) override {
    std::unique_ptr<VulkanWeight> weight = loader_.load(tensor, dtype);
    if (weight->streamed_layer != VulkanWeight::kResident) stream_->add(*weight);
    return weight;
  }

  std::unique_ptr<KvCache> make_kv_cache(DType dtype, int layers, int blocks, int kv_heads,
                                         int head_dim) override {
    if (stream_) stream_->reserve(loader_.slot_bytes());
    return std::make_unique<VulkanKvCache>(*device_, dtype, layers, blocks, kv_heads, head_dim);
  }

  void begin(const Batch& batch) override {
    run();
    if (step_.write(batch)) commands_->forget();
  }
  void begin_logits(const Batch& batch) override {
    if (std::any_of(pending_.begin(), pending_.end(),
                    [](const Operation& o) { return o.kind == OperationKind::gather_rows; }))
      run();
    step_.write_logit_rows(batch);
  }

  void embed(const Weight& table, Matrix& out) override {
    Operation operation = of(OperationKind::embed, out);
    operation.weight = vulkan(&table);
    operation.out = &vulkan(out);
    push(operation);
  }

  void rms_norm(const Matrix& x, const Weight& weight, float eps, Matrix& out) override {
    Operation operation = of(OperationKind::rms_norm, x);
    operation.weight = vulkan(&weight);
    operation.eps = eps;
    operation.out = &vulkan(out);
    push(operation);
  }

  void linear(const Matrix& x, std::span<const Linear> linears, std::span<Matrix* const> outs) override {
    for (size_t i = 0; i < linears.size(); ++i) {
      Operation operation = of(OperationKind::linear, x);
      operation.weight = vulkan(linears[i].weight);
      operation.bias = vulkan(linears[i].bias);
      operation.out = &vulkan(*outs[i]);
      operation.goes_on = i > 0;
      push(operation);
    }
  }

  void rope(Matrix& x, const Weight* norm, float eps, int head_dim, RopePairing pairing) override {
    Operation operation = of(OperationKind::rope, x);
    operation.weight = vulkan(norm);
    operation.eps = eps;
    operation.number = head_dim;
    operation.interleaved = pairing == RopePairing::interleaved;
    push(operation);
  }

  void store_kv(KvCache& cache, int layer, const Matrix& k, const Matrix& v) override {
    Operation operation = of(OperationKind::store_kv, k);
    operation.y = &vulkan(v);
    operation.cache = &vulkan(cache);
    operation.layer = layer;
    push(operation);
  }

  void attention(const KvCache& cache, int layer, const Matrix& q, int window, Matrix& out) override {
    Operation operation = of(OperationKind::attention, q);
    operation.cache = &vulkan(cache);
    operation.layer = layer;
    operation.number = window;
    operation.out = &vulkan(out);
    operation.attention = step_.attention();
    reserve_parts(operation);
    push(operation);
  }

  void silu_mul(Matrix& gate, const Matrix& up) override {
    Operation operation = of(OperationKind::silu_mul, gate);
    operation.y = &vulkan(up);
    push(operation);
  }

  void add(Matrix& x, const Matrix& y) override {
    Operation operation = of(OperationKind::add, x);
    operation.y = &vulkan(y);
    push(operation);
  }

  void gather_rows(const Matrix& x, Matrix& out) override {
    Operation operation = of(OperationKind::gather_rows, x);
    operation.rows = out.rows;
    operation.out = &vulkan(out);
    push(operation);
  }

  void argmax(const Matrix& x, int valid_cols, std::span<TokenId> ids) override {
    if (x.rows == 0) return;
    Operation operation = of(OperationKind::argmax, x);
    operation.number = valid_cols;
    const uint64_t bytes = static_cast<uint64_t>(x.rows) * sizeof(TokenId);
    reserve_results(bytes);
    push(operation);
    run();
    std::memcpy(ids.data(), results_->mapped(), bytes);
    count_read_back(bytes);
  }

  void top_k(const Matrix& x, int valid_cols, int k, std::span<TokenId> ids,
             std::span<float> values) override {
    if (x.rows == 0) return;
    const auto most = static_cast<size_t>(k);
    const auto rows = static_cast<size_t>(x.rows);
    Operation operation = of(OperationKind::top_k, x);
    operation.number = valid_cols;
    operation.most = k;
    const uint64_t bytes = rows * most * (sizeof(TokenId) + sizeof(float));
    reserve_results(bytes);
    push(operation);
    run();
    for (size_t row = 0; row < rows; ++row) {
      const std::byte* from = results_->mapped() + row * most * (sizeof(TokenId) + sizeof(float));
      std::memcpy(&ids[row * most], from, most * sizeof(TokenId));
      std::memcpy(&values[row * most], from + most * sizeof(TokenId), most * sizeof(float));
    }
    count_read_back(bytes);
    for (size_t row = 0; row < rows; ++row) {
      if (ids[row * most] != kNotRanked) continue;
      whole_row_.resize(static_cast<size_t>(x.cols));
      read_row(x, static_cast<int>(row), whole_row_);
      qwench::top_k(whole_row_.data(), valid_cols, k, &ids[row * most], &values[row * most]);
    }
  }
  bool rows_are_away() const override { return true; }

  void read_row(const Matrix& x, int row, std::span<float> out) override {
    const VulkanMatrix& matrix = vulkan(x);
    const uint64_t row_bytes = uint64_t{matrix.stride} * sizeof(float);
    const bool there = pending_.empty() && copy_.id == matrix.buffer().id() && row >= copy_.first &&
                       row < copy_.first + copy_.rows;
    if (!there) {
      const int most = static_cast<int>(std::max<uint64_t>(1, kReadBytes / row_bytes));
      Operation operation = of(OperationKind::read, x);
      operation.number = row;
      operation.rows = std::clamp(x.rows - row, 1, most);
      reserve_results(static_cast<uint64_t>(operation.rows) * row_bytes);
      push(operation);
      run();
      copy_ = {matrix.buffer().id(), row, operation.rows};
      count_read_back(static_cast<uint64_t>(operation.rows) * row_bytes);
    }
    const std::byte* from = results_->mapped() + static_cast<uint64_t>(row - copy_.first) * row_bytes;
    std::memcpy(out.data(), from, std::min(out.size(), static_cast<size_t>(x.cols)) * sizeof(float));
  }

  void copy_block(KvCache& cache, int from, int to) override {
    run();
    commands_->copy_block(vulkan(cache), from, to);
  }

  void measure(bool on) override {
    run();
    commands_->measure(on);
  }
  std::span<const OperationTime> measured() override { return commands_->measured(); }
  std::optional<DeviceSpeed> measure_speed() override {
    run();
    return qwench::measure_speed(device_, pipelines_);
  }
  std::span<const CopyTime> measured_copies() override { return commands_->measured_copies(); }

  DeviceCounts counts() const override {
    const VulkanCounts& counts = device_->counts();
    return {counts.submits, counts.read_backs, counts.read_back_bytes,
            stream_ ? static_cast<int64_t>(stream_->bytes_copied()) : 0};
  }

 private:
  static Operation of(OperationKind kind, const Matrix& x) {
    Operation operation;
    operation.kind = kind;
    operation.x = &vulkan(x);
    operation.rows = x.rows;
    return operation;
  }

  void push(const Operation& operation) {
    if (operation.rows == 0) return;
    copy_ = {};
    pending_.push_back(operation);
  }

  // What fails is not tried again: the results that were wanted are lost.
  void run() {
    if (pending_.empty()) return;
    struct Forget {
      std::vector<Operation>& pending;
      ~Forget() { pending.clear(); }
    } const forget{pending_};
    commands_->run(pending_, {&step_.buffer(), results_.get(), parts_.get()});
  }

  void reserve_results(uint64_t bytes) {
    if (results_ && results_->size() >= bytes) return;
    run();  // what was recorded for the buffer so far
    results_ = device_->make_buffer(std::max(bytes, kLeastResults), BufferPlace::download, "results");
    commands_->forget();
  }

  /// Room for the results of attention's parts; where there is none, one work group computes all parts.
  void reserve_parts(Operation& operation) {
    if (operation.attention.parts < 2) return;
    const uint64_t heads = static_cast<uint64_t>(operation.x->cols / operation.cache->head_dim);
    const uint64_t bytes = static_cast<uint64_t>(operation.rows) * heads *
                           static_cast<uint64_t>(operation.attention.parts) *
                           static_cast<uint64_t>(operation.cache->head_dim + 2) * sizeof(float);
    if (parts_ && parts_->size() >= bytes) return;
    if (bytes > kLargestParts) {
      operation.attention.parts = 1;
      return;
    }
    run();
    parts_ = device_->make_buffer(bytes, BufferPlace::device, "attention");
    commands_->forget();
  }

  void count_read_back(uint64_t bytes) {
    ++device_->counts().read_backs;
    device_->counts().read_back_bytes += static_cast<int64_t>(bytes);
  }

  /// Rows of a matrix that lie in the results.
  struct HostCopy {
    uint64_t id = 0;
    int first = 0;
    int rows = 0;
  };

  std::shared_ptr<VulkanDevice> device_;
  VulkanPipelines pipelines_;
  WeightLoader loader_;
  StepData step_;
  std::unique_ptr<WeightStream> stream_;
  std::unique_ptr<VulkanBuffer> results_;
  std::unique_ptr<VulkanBuffer> parts_;
  std::unique_ptr<CommandCache> commands_;  // after the buffers that its commands use
  std::vector<Operation> pending_;
  HostCopy copy_;
  std::vector<float> whole_row_;
};

}  // namespace

std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options, ThreadPool& pool) {
  VulkanDevice::Options device;
  device.memory_limit = options.memory;
  device.hides_memory = options.hides_memory;
  device.binding_limit = options.binding_limit;
  return std::make_unique<VulkanBackend>(VulkanDevice::open(options.index, device), options, pool);
}

int vulkan_validation_messages() { return VulkanInstance::validation_messages(); }

std::vector<DeviceInfo> vulkan_devices() {
  std::vector<DeviceInfo> devices;
  const std::shared_ptr<VulkanInstance> instance = VulkanInstance::get();
  for (const PhysicalDevice& device : instance->devices()) devices.push_back(device.info);
  return devices;
}

}  // namespace qwench
