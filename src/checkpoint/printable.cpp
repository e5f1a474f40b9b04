#include "checkpoint/printable.h"

#include <fmt/format.h>

#include "core/utf8.h"

namespace qwench {

std::string printable(std::string_view text) {
  constexpr size_t kLimit = 100;
  const bool cut = text.size() > kLimit;
  if (cut) {
    text = text.substr(0, kLimit);
    text.remove_suffix(static_cast<size_t>(incomplete_utf8_suffix(text)));
  }
  std::string out = "\"";
  for (const char c : to_valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += cut ? "...\"" : "\"";
  return out;
}

}  // namespace qwench
