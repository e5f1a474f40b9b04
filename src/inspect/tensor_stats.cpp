#include "inspect/tensor_stats.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/unpack.h"

namespace qwench {
namespace {

// Numbers that one worker takes at a time; a multiple of every block size.
constexpr int64_t kPart = int64_t{1} << 16;
constexpr int64_t kStep = 1024;

struct Part {
  size_t tensor;
  int64_t begin;
  int64_t end;
};

/// Counts, and mean and squared deviation in one pass (Welford 1962), merged as by Chan et al. 1979.
struct Sums {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  double mean = 0;
  double squares = 0;
  int64_t finite = 0;
  int64_t zeros = 0;
  int64_t nan = 0;
  int64_t inf = 0;

  void add(std::span<const float> values) {
    Sums step;
    double total = 0;
    for (const float v : values) {
      if (!std::isfinite(v)) {
        ++(std::isnan(v) ? step.nan : step.inf);
        continue;
      }
      step.min = std::min(step.min, v);
      step.max = std::max(step.max, v);
      step.zeros += v == 0 ? 1 : 0;
      total += v;
      ++step.finite;
    }
    if (step.finite > 0) step.mean = total / static_cast<double>(step.finite);
    for (const float v : values) {
      if (std::isfinite(v)) step.squares += (v - step.mean) * (v - step.mean);
    }
    merge(step);
  }

  void merge(const Sums& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    zeros += other.zeros;
    nan += other.nan;
    inf += other.inf;
    if (other.finite == 0) return;
    const auto n = static_cast<double>(finite);
    const auto m = static_cast<double>(other.finite);
    const double delta = other.mean - mean;
    mean += delta * m / (n + m);
    squares += other.squares + delta * delta * n * m / (n + m);
    finite += other.finite;
  }
};

/// Numbers [begin, begin + n) of a tensor, counted across its rows; both multiples of the block size.
void read(const ListedTensor& tensor, int64_t begin, int64_t n, float* out) {
  unpack(*tensor.dtype, tensor.bytes.data() + bytes_of(*tensor.dtype, static_cast<uint64_t>(begin)), 0, n,
         out);
}

}  // namespace

std::vector<std::optional<TensorStats>> tensor_stats(std::span<const ListedTensor> tensors, ThreadPool& pool,
                                                     const Progress& progress, const std::stop_token& stop) {
  std::vector<Part> parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].dtype) continue;
    const int64_t count = tensors[i].count();
    for (int64_t begin = 0; begin < count; begin += kPart)
      parts.push_back({i, begin, std::min(begin + kPart, count)});
  }
  std::vector<Sums> sums(parts.size());
  std::atomic<size_t> next{0};
  pool.run([&](int worker, int) {
    std::array<float, kStep> values;
    auto shown = std::chrono::steady_clock::now();
    for (size_t p = next++; p < parts.size() && !stop.stop_requested(); p = next++) {
      const Part& part = parts[p];
      for (int64_t at = part.begin; at < part.end; at += kStep) {
        const int64_t n = std::min(kStep, part.end - at);
        read(tensors[part.tensor], at, n, values.data());
        sums[p].add(std::span(values).first(static_cast<size_t>(n)));
      }
      const auto now = std::chrono::steady_clock::now();
      if (worker == 0 && progress && now - shown > std::chrono::milliseconds(50)) {
        progress(static_cast<double>(p + 1) / static_cast<double>(parts.size()));
        shown = now;
      }
    }
  });
  std::vector<Sums> totals(tensors.size());
  for (size_t p = 0; p < parts.size(); ++p) totals[parts[p].tensor].merge(sums[p]);
  std::vector<std::optional<TensorStats>> stats(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].dtype) continue;
    const Sums& t = totals[i];
    const bool any = t.finite > 0;
    stats[i] = {any ? t.min : 0, any ? t.max : 0,
                t.mean,          any ? std::sqrt(t.squares / static_cast<double>(t.finite)) : 0,
                t.zeros,         t.nan,
                t.inf,           tensors[i].count()};
  }
  return stats;
}

double max_difference(const ListedTensor& a, const ListedTensor& b, ThreadPool& pool) {
  if (a.dtype == b.dtype && a.bytes.size() == b.bytes.size() &&
      std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0)
    return 0;
  std::vector<double> largest(static_cast<size_t>(pool.size()), 0);
  pool.parallel_for(a.count(), kPart, [&](int64_t begin, int64_t end, int worker) {
    std::array<float, kStep> left;
    std::array<float, kStep> right;
    double& worst = largest[static_cast<size_t>(worker)];
    for (int64_t at = begin; at < end; at += kStep) {
      const int64_t n = std::min(kStep, end - at);
      read(a, at, n, left.data());
      read(b, at, n, right.data());
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        const bool both_nan = std::isnan(left[i]) && std::isnan(right[i]);
        if (left[i] == right[i] || both_nan) continue;
        const double difference = std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i]));
        worst =
            std::max(worst, std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity());
      }
    }
  });
  return *std::max_element(largest.begin(), largest.end());
}

}  // namespace qwench
