#pragma once

// Included before Highway's headers by every file that is compiled once per instruction set: which sets are
// not worth the build time (SSSE3), and which have vectors whose length is unknown to the compiler, so that
// they cannot be kept in arrays as the kernels do (SVE, RVV).
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
