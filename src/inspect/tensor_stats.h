#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/thread_pool.h"
#include "inspect/listing.h"

namespace qwench {

/// Of the finite numbers of one tensor; dequantized first where it is quantized.
struct TensorStats {
  float min = 0;
  float max = 0;
  double mean = 0;
  double std = 0;  ///< of the population
  int64_t zeros = 0;
  int64_t nan = 0;
  int64_t inf = 0;
  int64_t count = 0;  ///< all numbers
};

/// Called now and then with the share done, 0 to 1, from the calling thread.
using Progress = std::function<void(double share)>;

/// In the order of `tensors`; empty where a type cannot be read. The result does not depend on the number of
/// threads. Ends early, with what it has, when `stop` is asked for.
std::vector<std::optional<TensorStats>> tensor_stats(std::span<const ListedTensor> tensors, ThreadPool& pool,
                                                     const Progress& progress = {},
                                                     const std::stop_token& stop = {});

/// The largest absolute difference of two tensors of equal shape that can be read; infinite where one is not
/// finite and the other differs from it. Types may differ.
double max_difference(const ListedTensor& a, const ListedTensor& b, ThreadPool& pool);

}  // namespace qwench
