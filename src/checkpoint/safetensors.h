#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qwench/dtype.h"

namespace qwench {

/// A tensor as a safetensors header lists it.
struct SafetensorsEntry {
  std::string name;            ///< as in the file
  std::string dtype_name;      ///< "BF16", "I64"
  std::optional<DType> dtype;  ///< F32, F16, BF16; empty for the other types of the format
  std::vector<int64_t> shape;  ///< outermost first; dimensions may be 0
  std::span<const std::byte> bytes;
};

/// Reads the header of a safetensors file (https://github.com/huggingface/safetensors) that lies in memory,
/// in the order of the data. The file is held to every rule of the format: see the list in the
/// implementation. `what` names the file in errors. Throws Error (malformed).
std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file, const std::string& what);

}  // namespace qwench
