#pragma once

#include <string>
#include <string_view>

namespace qwench {

/// The name under which a Checkpoint lists a tensor of a safetensors file: with the "model." prefix that some
/// files leave out. "layers.0.mlp.up_proj.weight" -> "model.layers.0.mlp.up_proj.weight"; names of no known
/// place stay as they are.
std::string canonical_name(std::string_view name);

/// The same for a GGUF file: "blk.0.ffn_up.weight" -> "model.layers.0.mlp.up_proj.weight".
std::string canonical_gguf_name(std::string_view name);

/// The way back, for error messages about GGUF files; empty when GGUF has no such tensor.
std::string gguf_name(std::string_view canonical);

}  // namespace qwench
