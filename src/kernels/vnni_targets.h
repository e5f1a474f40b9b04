#pragma once

// In place of targets.h where bytes are multiplied, or tiles of AMX: also for AVX-512 with VNNI, which
// Highway compiles for only where it is asked to. Other kernels would be the same as for AVX-512 without.
#define HWY_WANT_AVX3_DL
#include "kernels/targets.h"
