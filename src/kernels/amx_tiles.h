#pragma once

#include <cstdint>
#include <cstring>

/// Instructions on tiles (Intel's Software Developer's Manual, volume 1, chapter 18). A thread has 8 tiles,
/// numbers 0 to 7, of 16 rows of 64 bytes at most. Only where amx_available(); written as assembly, as
/// compilers want a target of its own for their functions.
namespace qwench::amx {

inline constexpr int kRows = 16;
inline constexpr int64_t kRowBytes = 64;
inline constexpr int64_t kTileBytes = kRows * kRowBytes;

/// Shapes of the tiles, which hold while it lives: until then a thread's tiles cost nothing.
class Shapes {
 public:
  /// Tile t has rows[t] rows of row_bytes[t] bytes.
  Shapes(const int (&rows)[8], const int (&row_bytes)[8]) {
    alignas(64) uint8_t config[64] = {1};  // palette 1
    for (int t = 0; t < 8; ++t) {
      const auto width = static_cast<uint16_t>(row_bytes[t]);
      std::memcpy(config + 16 + 2 * t, &width, sizeof(width));
      config[48 + t] = static_cast<uint8_t>(rows[t]);
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~Shapes() { asm volatile("tilerelease"); }
  Shapes(const Shapes&) = delete;
  Shapes& operator=(const Shapes&) = delete;
};

template <int kTile>
[[gnu::always_inline]] inline void zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

/// Rows `stride` bytes apart.
template <int kTile>
[[gnu::always_inline]] inline void load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
[[gnu::always_inline]] inline void store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
}

/// sums[m, n] += sum over pairs of bf16 of a[m, pair] b[pair, n]: the products of first numbers and those of
/// second ones are a chain of fused multiply-adds each, from 0 on; then both are added, and then their sum.
/// Rounded to nearest; subnormal numbers count as 0.
template <int kSums, int kA, int kB>
[[gnu::always_inline]] inline void multiply_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}

/// sums[m, n] += sum over quads of bytes of a[m, quad] b[quad, n], exactly: signed by signed bytes, and
/// unsigned by signed ones.
template <int kSums, int kA, int kB>
[[gnu::always_inline]] inline void multiply_signed() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}
template <int kSums, int kA, int kB>
[[gnu::always_inline]] inline void multiply_unsigned() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
}

}  // namespace qwench::amx
