#pragma once

// Included before Highway's headers by every file that is compiled once per instruction set: which sets are
// not worth the build time (SSSE3), and which have vectors whose length is unknown to the compiler, so that
// they cannot be kept in arrays as the kernels do (SVE, RVV).
#define QWENCH_UNUSED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

// Under the address sanitizer each set takes a minute to compile: AVX2 or NEON stands for all, beside the
// baseline where CMakeLists.txt has not made it AVX2.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QWENCH_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(QWENCH_ADDRESS_SANITIZER)
#define HWY_DISABLED_TARGETS (QWENCH_UNUSED_TARGETS | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS QWENCH_UNUSED_TARGETS
#endif
