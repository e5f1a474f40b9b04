#pragma once

#include <string>
#include <string_view>

namespace qwench {

/// A to Z become a to z; all other bytes stay, whatever the locale.
inline std::string ascii_lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return result;
}

}  // namespace qwench
