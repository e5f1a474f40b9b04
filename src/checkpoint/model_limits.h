#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/model_config.h"

namespace qwench {

/// Sizes beyond which a config is taken for broken: ten times the largest published models or more, and small
/// enough that the product of any three fits 64 bits.
namespace limits {
inline constexpr int64_t kLayers = 1024;
inline constexpr int64_t kHeads = 4096;
inline constexpr int64_t kHeadDim = 4096;
inline constexpr int64_t kWidth = 1 << 20;  // hidden_size, intermediate_size
inline constexpr int64_t kVocabulary = 10'000'000;
inline constexpr int64_t kPositions = 1'000'000'000;
}  // namespace limits

/// What must hold between the fields, whatever file they come from. Throws Error (malformed).
void check_model_config(const ModelConfig& config, const std::string& what);

}  // namespace qwench
