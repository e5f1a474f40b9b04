#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/gguf.h"

namespace qwench {

/// What one GGUF file lists, in its order.
struct GgufContent {
  uint32_t version = 0;
  std::vector<std::pair<std::string_view, GgufValue>> values;
  std::vector<GgufTensor> tensors;
};

/// Reads and checks the header, metadata and tensor list of one file. Throws Error naming `what`.
GgufContent read_gguf(std::span<const std::byte> file, const std::string& what);

/// Bytes of one value of a fixed size; 0 for strings and arrays.
size_t gguf_value_bytes(GgufType type) noexcept;
std::string_view name(GgufType type) noexcept;

}  // namespace qwench
