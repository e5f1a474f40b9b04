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

}  // namespace qwench
