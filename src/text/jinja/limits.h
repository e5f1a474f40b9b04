#pragma once

#include <cstddef>
#include <cstdint>

namespace qwench {

/// Budgets of one rendering: templates come with model files and are not trusted. Running out is a
/// TemplateError of kind `limit`.
struct RenderLimits {
  size_t max_output = size_t{64} << 20;   ///< bytes of the rendered text, and of any one string on the way
  size_t max_memory = size_t{512} << 20;  ///< bytes of values alive at once, about
  uint64_t max_steps = 20'000'000;  ///< expressions evaluated, plus work in proportion to the data moved
  int max_depth = 200;              ///< macro calls and recursive loops inside each other
};

}  // namespace qwench
