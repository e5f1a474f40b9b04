#pragma once

#include <cstdint>

namespace qwench {

/// How far ahead of what is read weights are fetched, in bytes. Measured: the first distance alone doubles
/// the rate of kernels that read several bytes a cycle; 2 KB are too few, and fetching into the L1 cache as
/// well gains nothing.
inline constexpr int64_t kAheadOfReads = 8192;
/// The same for panels of quantized weights, which take more time for each byte.
inline constexpr int64_t kAheadOfQuants = 4096;

/// A hint: the line of 64 bytes at p will be read soon, but not at once: to the L2 cache. p may be any
/// address. Always inlined, as GCC takes a function that only fetches for one without effect, and its calls
/// away.
[[gnu::always_inline]] inline void fetch_ahead(const void* p) { __builtin_prefetch(p, 0, 2); }

/// A hint: the lines of `count` floats of each of `rows` rows, `stride` floats apart, will be read and
/// written soon. Measured: sums of a tile that are added to those of the columns before wait for memory
/// otherwise, an eighth of the time of 512 rows.
[[gnu::always_inline]] inline void fetch_sums(const float* sums, int64_t rows, int64_t stride,
                                              int64_t count) {
  for (int64_t r = 0; r < rows; ++r, sums += stride) {
    for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(sums + i, 1, 3);
  }
}

}  // namespace qwench
