#include "verify/tracing_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace qwench {
namespace {

uint64_t bytes_of(const Matrix& matrix) {
  return static_cast<uint64_t>(matrix.rows) * static_cast<uint64_t>(matrix.cols) * sizeof(float);
}

uint64_t bytes_of(const Weight& weight) {
  if (weight.stored_bytes > 0) return weight.stored_bytes;
  return bytes_of(weight.dtype, static_cast<uint64_t>(weight.rows) * static_cast<uint64_t>(weight.cols));
}

std::string shape_of(const Matrix& matrix) { return fmt::format("[{}, {}]", matrix.rows, matrix.cols); }

constexpr std::string_view kLayers = "model.layers.";

}  // namespace

TracingBackend::TracingBackend(std::unique_ptr<Backend> inner)
    : inner_(std::move(inner)), origin_(Clock::now()) {}

void TracingBackend::start(bool norms) {
  events_.clear();
  norms_ = norms;
  recording_ = true;
  layer_ = TraceEvent::kNoLayer;
  // Reading an output after each operation, the device would run them one by one.
  if (!norms) inner_->measure(true);
  origin_ = Clock::now();
}

void TracingBackend::stop() {
  recording_ = false;
  if (!norms_) inner_->measure(false);
  const std::span<const OperationTime> times = inner_->measured();
  if (norms_ || times.size() != events_.size()) return;
  for (size_t i = 0; i < events_.size(); ++i) {
    events_[i].start = times[i].start;
    events_[i].seconds = times[i].seconds;
    events_[i].fused = times[i].fused;
  }
}

std::unique_ptr<Weight> TracingBackend::load(const TensorView& tensor, DType dtype) {
  std::unique_ptr<Weight> weight = inner_->load(tensor, dtype);
  names_[weight.get()] = tensor.name;
  return weight;
}

std::unique_ptr<Weight> TracingBackend::load_table(const TensorView& tensor, DType dtype) {
  std::unique_ptr<Weight> table = inner_->load_table(tensor, dtype);
  names_[table.get()] = tensor.name;
  return table;
}

void TracingBackend::begin(const Batch& batch) {
  batch_ = &batch;
  layer_ = TraceEvent::kNoLayer;
  inner_->begin(batch);
}

void TracingBackend::begin_logits(const Batch& batch) {
  batch_ = &batch;
  inner_->begin_logits(batch);
}

// "model.layers.3.self_attn.q_proj.weight" is q_proj of layer 3.
std::string TracingBackend::enter(const Weight& weight) {
  const auto found = names_.find(&weight);
  std::string_view name = found == names_.end() ? "weight" : std::string_view(found->second);
  layer_ = TraceEvent::kNoLayer;
  if (name.starts_with(kLayers)) {
    const std::string_view rest = name.substr(kLayers.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), layer_);
  }
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return std::string(name.substr(name.rfind('.') + 1));
}

double TracingBackend::root_mean_square(const Matrix& matrix) {
  row_.resize(static_cast<size_t>(matrix.cols));
  double sum = 0;
  for (int r = 0; r < matrix.rows; ++r) {
    inner_->read_row(matrix, r, row_);
    for (const float value : row_) sum += static_cast<double>(value) * value;
  }
  const double count = static_cast<double>(matrix.rows) * matrix.cols;
  return count > 0 ? std::sqrt(sum / count) : 0;
}

TraceEvent TracingBackend::event(std::string operation, std::string name, std::string shape,
                                 uint64_t bytes) const {
  TraceEvent event;
  event.operation = std::move(operation);
  event.name = std::move(name);
  event.layer = layer_;
  event.shape = std::move(shape);
  event.bytes = bytes;
  return event;
}

template <typename F>
void TracingBackend::record(TraceEvent event, const Matrix* out, F&& f) {
  const Clock::time_point begin = Clock::now();
  f();
  const Clock::time_point end = Clock::now();
  event.start = std::chrono::duration<double>(begin - origin_).count();
  event.seconds = std::chrono::duration<double>(end - begin).count();
  if (norms_ && out != nullptr) event.norm = root_mean_square(*out);
  events_.push_back(std::move(event));
}

void TracingBackend::embed(const Weight& table, Matrix& out) {
  if (!recording_) return inner_->embed(table, out);
  const std::string name = enter(table);
  const uint64_t row = qwench::bytes_of(table.dtype, static_cast<uint64_t>(table.cols));
  record(event("embed", name, fmt::format("[{}] -> {}", out.rows, shape_of(out)),
               row * static_cast<uint64_t>(out.rows) + bytes_of(out)),
         &out, [&] { inner_->embed(table, out); });
}

void TracingBackend::rms_norm(const Matrix& x, const Weight& weight, float eps, Matrix& out) {
  if (!recording_) return inner_->rms_norm(x, weight, eps, out);
  const std::string name = enter(weight);
  record(event("rms_norm", name, shape_of(x), bytes_of(x) + bytes_of(out) + bytes_of(weight)), &out,
         [&] { inner_->rms_norm(x, weight, eps, out); });
}

void TracingBackend::linear(const Matrix& x, std::span<const Linear> linears, std::span<Matrix* const> outs) {
  if (!recording_) return inner_->linear(x, linears, outs);
  std::string names;
  std::string shapes;
  uint64_t bytes = bytes_of(x);
  for (size_t i = 0; i < linears.size(); ++i) {
    const std::string_view separator = i == 0 ? "" : " + ";
    // A tied head is the embedding's table.
    std::string name = enter(*linears[i].weight);
    if (name == "embed_tokens") name = "lm_head (embed_tokens)";
    names += fmt::format("{}{}", separator, name);
    shapes += fmt::format("{}{}", i == 0 ? "" : ", ", shape_of(*outs[i]));
    bytes += bytes_of(*linears[i].weight) + bytes_of(*outs[i]);
    if (linears[i].bias != nullptr) bytes += bytes_of(*linears[i].bias);
  }
  record(event("linear", names, fmt::format("{} -> {}", shape_of(x), shapes), bytes),
         outs.empty() ? nullptr : outs.front(), [&] { inner_->linear(x, linears, outs); });
}

void TracingBackend::rope(Matrix& x, const Weight* norm, float eps, int head_dim, RopePairing pairing) {
  if (!recording_) return inner_->rope(x, norm, eps, head_dim, pairing);
  std::string name = "rope";
  if (norm != nullptr) name = enter(*norm) + " + rope";
  const uint64_t angles = (batch_->rope_cos.size() + batch_->rope_sin.size()) * sizeof(float);
  record(
      event("rope", name, fmt::format("{} in heads of {}", shape_of(x), head_dim), 2 * bytes_of(x) + angles),
      &x, [&] { inner_->rope(x, norm, eps, head_dim, pairing); });
}

void TracingBackend::store_kv(KvCache& cache, int layer, const Matrix& k, const Matrix& v) {
  if (!recording_) return inner_->store_kv(cache, layer, k, v);
  layer_ = layer;
  const uint64_t cells = static_cast<uint64_t>(k.rows) * static_cast<uint64_t>(k.cols + v.cols);
  record(event("store_kv", "store_kv", fmt::format("{}, {}", shape_of(k), shape_of(v)),
               bytes_of(k) + bytes_of(v) + qwench::bytes_of(cache.dtype, cells)),
         nullptr, [&] { inner_->store_kv(cache, layer, k, v); });
}

void TracingBackend::attention(const KvCache& cache, int layer, const Matrix& q, int window, Matrix& out) {
  if (!recording_) return inner_->attention(cache, layer, q, window, out);
  layer_ = layer;
  uint64_t positions = 0;
  for (const SequenceRows& sequence : batch_->sequences) {
    const int seen = window > 0 ? std::min(sequence.context, window + sequence.rows - 1) : sequence.context;
    positions += static_cast<uint64_t>(seen);
  }
  const uint64_t cells =
      2 * positions * static_cast<uint64_t>(cache.kv_heads) * static_cast<uint64_t>(cache.head_dim);
  record(event("attention", "attention",
               fmt::format("{} over {} position{}", shape_of(q), positions, positions == 1 ? "" : "s"),
               bytes_of(q) + bytes_of(out) + qwench::bytes_of(cache.dtype, cells)),
         &out, [&] { inner_->attention(cache, layer, q, window, out); });
}

void TracingBackend::silu_mul(Matrix& gate, const Matrix& up) {
  if (!recording_) return inner_->silu_mul(gate, up);
  record(event("silu_mul", "silu_mul", shape_of(gate), 2 * bytes_of(gate) + bytes_of(up)), &gate,
         [&] { inner_->silu_mul(gate, up); });
}

void TracingBackend::add(Matrix& x, const Matrix& y) {
  if (!recording_) return inner_->add(x, y);
  record(event("add", "add", shape_of(x), 2 * bytes_of(x) + bytes_of(y)), &x, [&] { inner_->add(x, y); });
}

void TracingBackend::gather_rows(const Matrix& x, Matrix& out) {
  if (!recording_) return inner_->gather_rows(x, out);
  record(event("gather_rows", "gather_rows", fmt::format("{} -> {}", shape_of(x), shape_of(out)),
               2 * bytes_of(out)),
         &out, [&] { inner_->gather_rows(x, out); });
}

void TracingBackend::argmax(const Matrix& x, int valid_cols, std::span<TokenId> ids) {
  if (!recording_) return inner_->argmax(x, valid_cols, ids);
  record(event("argmax", "argmax", shape_of(x), bytes_of(x)), nullptr,
         [&] { inner_->argmax(x, valid_cols, ids); });
}

void TracingBackend::top_k(const Matrix& x, int valid_cols, int k, std::span<TokenId> ids,
                           std::span<float> values) {
  if (!recording_) return inner_->top_k(x, valid_cols, k, ids, values);
  record(event("top_k", "top_k", fmt::format("{}, {} of each row", shape_of(x), k), bytes_of(x)), nullptr,
         [&] { inner_->top_k(x, valid_cols, k, ids, values); });
}

}  // namespace qwench
