#pragma once

#include <cstdint>

#include "cli/model_flags.h"

namespace qwench::cli {

/// qwench verify --invariance. Returns the exit code.
int verify_invariance(const ModelFlags& model, uint64_t seed, int rounds, bool json);

}  // namespace qwench::cli
