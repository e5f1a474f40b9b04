#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace qwench {

/// How llama.cpp and what is built on it call the way a model's weights are stored, "Q4_K_M", "Q8_0", "BF16":
/// what a GGUF file's general.file_type says, else the type of most bytes.
std::string quantization_name(const Checkpoint& checkpoint);

}  // namespace qwench
