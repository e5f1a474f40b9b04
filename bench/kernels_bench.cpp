// linear and attention of the CPU backend at the sizes of Qwen3-0.6B, beside what the machine can do:
// counters "GB/s" (weights or cells read, also as a share of the measured bandwidth) and "GFLOP/s" (also as a
// share of the measured peak). Times vary on a busy machine: use --benchmark_repetitions and take the best.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "kernels/machine_limits.h"
#include "kernels/unpack.h"

namespace qwench {
namespace {

ThreadPool& pool() {
  static ThreadPool threads;
  return threads;
}

const MachineLimits& limits() {
  static const MachineLimits measured = measure_machine(pool());
  return measured;
}

void report(benchmark::State& state, double bytes, double operations) {
  const auto rate = [](double value) {
    return benchmark::Counter(value, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["GB/s"] = rate(bytes * 1e-9);
  state.counters["of_read"] = rate(bytes * 1e-9 / limits().read_gb_per_s);
  state.counters["GFLOP/s"] = rate(operations * 1e-9);
  state.counters["of_peak"] = rate(operations * 1e-9 / limits().f32_gflop_per_s);
}

std::unique_ptr<Matrix> random_matrix(Backend& backend, int rows, int cols) {
  static std::vector<std::byte> table;  // [1, cols] of f32
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(cols));
  for (float& v : values) v = normal(generator);
  table.resize(values.size() * sizeof(float));
  pack(DType::f32, values.data(), cols, table.data());
  const auto weight = backend.load({"x", DType::f32, {1, cols}, table}, DType::f32);
  const std::vector<TokenId> tokens(static_cast<size_t>(rows), 0);
  const Batch batch{tokens, {}, {}, {}, {}};
  auto matrix = backend.allocate(rows, cols);
  matrix->rows = rows;
  backend.begin(batch);
  backend.embed(*weight, *matrix);
  return matrix;
}

// Enough layers of [3072, 1024] that the weights are read from memory, as in decoding.
void linear(benchmark::State& state, DType dtype) {
  constexpr int kOut = 3072;
  constexpr int kIn = 1024;
  const int rows = static_cast<int>(state.range(0));
  const auto backend = make_cpu_backend(pool());
  const size_t bytes = bytes_of(dtype, size_t{kOut} * kIn);
  const size_t layers = rows > 16 ? 2 : (size_t{192} << 20) / bytes;
  std::vector<std::byte> memory(bytes * layers);
  std::mt19937 generator(1);
  for (std::byte& b : memory) b = static_cast<std::byte>(generator() & 0x3FU);  // no large exponents
  std::vector<std::unique_ptr<Weight>> weights;
  for (size_t i = 0; i < layers; ++i) {
    weights.push_back(
        backend->load({"w", dtype, {kOut, kIn}, std::span(memory).subspan(i * bytes, bytes)}, dtype));
  }
  const auto x = random_matrix(*backend, rows, kIn);
  const auto y = random_matrix(*backend, rows, kOut);
  size_t next = 0;
  for (auto _ : state) {
    const Linear linears[] = {{weights[next++ % layers].get(), nullptr}};
    Matrix* const outs[] = {y.get()};
    backend->linear(*x, linears, outs);
  }
  report(state, static_cast<double>(bytes), 2.0 * kOut * kIn * rows);
}

// `rows` new positions at the end of `context`, 16 heads and 8 kv heads of 128.
void attention(benchmark::State& state, DType cell) {
  constexpr int kHeads = 16;
  constexpr int kKvHeads = 8;
  constexpr int kHeadDim = 128;
  const int rows = static_cast<int>(state.range(0));
  const int context = static_cast<int>(state.range(1));
  const auto backend = make_cpu_backend(pool());
  const int blocks = (context + kBlockSize - 1) / kBlockSize;
  const auto cache = backend->make_kv_cache(cell, 1, blocks, kKvHeads, kHeadDim);
  std::vector<int32_t> table;
  for (int i = 0; i < blocks; ++i) table.push_back(i);
  {
    const auto k = random_matrix(*backend, context, kKvHeads * kHeadDim);
    const std::vector<SequenceRows> all{{0, context, context, table}};
    const std::vector<TokenId> tokens(static_cast<size_t>(context), 0);
    const Batch batch{tokens, {}, {}, all, {}};
    backend->begin(batch);
    backend->store_kv(*cache, 0, *k, *k);
  }
  const auto q = random_matrix(*backend, rows, kHeads * kHeadDim);
  const auto out = random_matrix(*backend, rows, kHeads * kHeadDim);
  const std::vector<SequenceRows> sequences{{0, rows, context, table}};
  const std::vector<TokenId> tokens(static_cast<size_t>(rows), 0);
  const Batch batch{tokens, {}, {}, sequences, {}};
  backend->begin(batch);
  for (auto _ : state) backend->attention(*cache, 0, *q, 0, *out);
  const double cells = 2.0 * context * kKvHeads * kHeadDim;
  const double seen = rows * (context - (rows - 1) / 2.0);
  report(state, static_cast<double>(bytes_of(cell, static_cast<uint64_t>(cells))),
         4.0 * seen * kHeads * kHeadDim);
}

// What it costs to hand work to the threads and to wait for them.
void barrier(benchmark::State& state) {
  std::atomic<int> sink{0};
  for (auto _ : state) pool().run([&](int worker, int) { sink.store(worker, std::memory_order_relaxed); });
}

void register_all() {
  benchmark::RegisterBenchmark("barrier", barrier)->UseRealTime();
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    auto* bench = benchmark::RegisterBenchmark(("linear/" + std::string(name(dtype))).c_str(),
                                               [dtype](benchmark::State& state) { linear(state, dtype); });
    for (const int rows : {1, 4, 16, 64, 512}) bench->Arg(rows);
    bench->UseRealTime();
  }
  for (const DType cell : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    benchmark::RegisterBenchmark(("attention/" + std::string(name(cell))).c_str(),
                                 [cell](benchmark::State& state) { attention(state, cell); })
        ->Args({1, 1024})
        ->Args({1, 16384})
        ->Args({512, 512})
        ->Args({512, 4608})
        ->UseRealTime();
  }
}

}  // namespace
}  // namespace qwench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  qwench::register_all();
  benchmark::AddCustomContext("machine",
                              fmt::format("{}; reads {:.1f} GB/s, computes {:.1f} GFLOP/s in f32",
                                          qwench::make_cpu_backend(qwench::pool())->description(),
                                          qwench::limits().read_gb_per_s, qwench::limits().f32_gflop_per_s));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
