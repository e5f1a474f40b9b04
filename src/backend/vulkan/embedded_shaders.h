#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace qwench {

/// A shader's SPIR-V, as glslc made it when this program was built (cmake/shaders.cmake).
struct EmbeddedShader {
  std::string_view name;  // "linear_rows.q8_0"
  std::span<const uint32_t> words;
};

std::span<const EmbeddedShader> embedded_shaders();

}  // namespace qwench
