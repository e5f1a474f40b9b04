#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace qwench {

/// One operation of a pass, as it was run.
struct TraceEvent {
  static constexpr int kNoLayer = -1;

  std::string operation;  ///< "linear", "attention"
  std::string name;       ///< "q_proj + k_proj + v_proj", or the operation's where it has no weights
  int layer = kNoLayer;   ///< of the weights, or of the operation before
  std::string shape;      ///< "[6, 64] -> [6, 128], [6, 64], [6, 64]"
  double start = 0;       ///< seconds since the trace began
  double seconds = 0;
  uint64_t bytes = 0;  ///< least traffic: weights and inputs read once, outputs written once
  double norm = 0;     ///< root mean square of the (first) output's values; 0 where norms are off
  bool fused = false;  ///< on a device: computed with the event before, whose time is that of both

  double bandwidth() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

/// Watches another backend: every operation is passed on and, while recording, timed and described. Weights
/// are known by the names under which they were loaded. As Backend, but recording allocates. On a device that
/// runs operations later, its own timestamps are the times.
class TracingBackend final : public Backend {
 public:
  explicit TracingBackend(std::unique_ptr<Backend> inner);

  /// Starts anew. With `norms`, each output is read after its operation; that is not timed.
  void start(bool norms);
  /// On a device, events get the times that it measured.
  void stop();
  const std::vector<TraceEvent>& events() const { return events_; }

  std::string description() const override { return inner_->description(); }
  std::unique_ptr<Matrix> allocate(int capacity, int cols) override {
    return inner_->allocate(capacity, cols);
  }
  std::unique_ptr<Weight> load(const TensorView& tensor, DType dtype) override;
  std::unique_ptr<Weight> load_table(const TensorView& tensor, DType dtype) override;
  std::unique_ptr<KvCache> make_kv_cache(DType dtype, int layers, int blocks, int kv_heads,
                                         int head_dim) override {
    return inner_->make_kv_cache(dtype, layers, blocks, kv_heads, head_dim);
  }
  void begin(const Batch& batch) override;
  void begin_logits(const Batch& batch) override;
  void embed(const Weight& table, Matrix& out) override;
  void rms_norm(const Matrix& x, const Weight& weight, float eps, Matrix& out) override;
  void linear(const Matrix& x, std::span<const Linear> linears, std::span<Matrix* const> outs) override;
  void rope(Matrix& x, const Weight* norm, float eps, int head_dim, RopePairing pairing) override;
  void store_kv(KvCache& cache, int layer, const Matrix& k, const Matrix& v) override;
  void attention(const KvCache& cache, int layer, const Matrix& q, int window, Matrix& out) override;
  void silu_mul(Matrix& gate, const Matrix& up) override;
  void add(Matrix& x, const Matrix& y) override;
  void gather_rows(const Matrix& x, Matrix& out) override;
  void argmax(const Matrix& x, int valid_cols, std::span<TokenId> ids) override;
  void top_k(const Matrix& x, int valid_cols, int k, std::span<TokenId> ids,
             std::span<float> values) override;
  bool rows_are_away() const override { return inner_->rows_are_away(); }
  void read_row(const Matrix& x, int row, std::span<float> out) override { inner_->read_row(x, row, out); }
  void copy_block(KvCache& cache, int from, int to) override { inner_->copy_block(cache, from, to); }
  void measure(bool on) override { inner_->measure(on); }
  std::span<const OperationTime> measured() override { return inner_->measured(); }
  std::span<const CopyTime> measured_copies() override { return inner_->measured_copies(); }
  DeviceCounts counts() const override { return inner_->counts(); }
  std::optional<DeviceSpeed> measure_speed() override { return inner_->measure_speed(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// Runs f, and records `event` with its time and the norm of `out` (which may be null).
  template <typename F>
  void record(TraceEvent event, const Matrix* out, F&& f);
  TraceEvent event(std::string operation, std::string name, std::string shape, uint64_t bytes) const;
  /// The weight's short name; its layer becomes the current one.
  std::string enter(const Weight& weight);
  double root_mean_square(const Matrix& matrix);

  std::unique_ptr<Backend> inner_;
  std::map<const Weight*, std::string> names_;
  const Batch* batch_ = nullptr;
  bool recording_ = false;
  bool norms_ = false;
  int layer_ = TraceEvent::kNoLayer;
  Clock::time_point origin_;
  std::vector<TraceEvent> events_;
  std::vector<float> row_;
};

}  // namespace qwench
