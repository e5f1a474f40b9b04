#pragma once

#include <cstdint>

#include "checkpoint/json_fields.h"
#include "checkpoint/model_config.h"

namespace qwench {

/// The RoPE part of a config.json: `rope_theta` with `rope_scaling` as published checkpoints have them, or
/// `rope_parameters` as transformers 5 writes it. `max_position` is max_position_embeddings.
RopeConfig read_rope_config(const JsonFields& config, int64_t max_position);

/// The same from the keys under "{architecture}.rope." of a GGUF file, and its rope_freqs.weight.
RopeConfig read_rope_config(const GgufFile& file, const std::string& architecture, int64_t max_position,
                            int head_dim);

/// How many positions a model can use: what its config promises, stretched where RoPE scaling is added to a
/// config that still has the unscaled length (as the authors of Qwen2.5 advise to do for YaRN).
int64_t stretched_positions(const RopeConfig& rope, int64_t max_position);

}  // namespace qwench
