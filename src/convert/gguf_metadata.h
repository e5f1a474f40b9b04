#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_writer.h"

namespace qwench {

/// general.architecture and the keys under it, as llama.cpp names them, from the config of a Hugging Face
/// checkpoint, and general.sampling.* from its generation_config.json. Throws Error (unsupported) where the
/// format has no words for what the model does: dynamic RoPE scaling, sliding windows, YaRN without rounding.
void add_model_metadata(GgufWriter& writer, const Checkpoint& checkpoint, const std::string& name);

/// What divides each of RoPE's frequencies [head_dim / 2], as rope_freqs.weight holds it: Llama 3's scaling,
/// for which the format has no keys. Empty for models without it.
std::vector<float> rope_factors(const ModelConfig& config);

/// general.file_type, which is about most of the tensors.
uint32_t gguf_file_type(DType dtype);

}  // namespace qwench
