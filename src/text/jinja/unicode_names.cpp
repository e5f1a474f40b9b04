#include "text/jinja/string_literal.h"

namespace qwench::jinja {

std::optional<char32_t> character_by_name(std::string_view name) {
  if (name == "BULLET") return 0x2022;
  return std::nullopt;
}

}  // namespace qwench::jinja
