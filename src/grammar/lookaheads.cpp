#include "grammar/lookaheads.h"

#include <string_view>

#include "core/json.h"

namespace qwench {
namespace {

const std::string kNoneOf =
    "\x01"
    "none of";

/// Where the group that opens at `begin` closes, or where, outside of groups, another character stands; npos
/// for nowhere.
size_t find_outside(std::string_view pattern, size_t begin, char wanted) {
  int depth = 0;
  bool in_class = false;
  for (size_t i = begin; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0 && wanted == ')') {
      return i;
    } else if (c == wanted && depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string none_of(const std::vector<std::string>& patterns) { return kNoneOf + Json(patterns).dump(); }

std::vector<PatternPart> split_lookaheads(const std::string& pattern) {
  constexpr size_t kMostParts = 8;
  std::vector<PatternPart> parts;
  if (pattern.starts_with(kNoneOf)) {
    for (const Json& one : Json::parse(pattern.substr(kNoneOf.size())))
      parts.push_back({one.get<std::string>(), false});
    return parts.empty() ? std::vector<PatternPart>{{"", true}} : parts;
  }
  std::string_view rest = pattern;
  if (!rest.starts_with('^') || find_outside(rest, 0, '|') != std::string_view::npos)
    return {{pattern, true}};
  rest.remove_prefix(1);
  while (rest.starts_with("(?=") || rest.starts_with("(?!")) {
    const size_t end = find_outside(rest, 0, ')');
    if (end == std::string_view::npos || parts.size() == kMostParts) return {{pattern, true}};
    std::string_view inner = rest.substr(3, end - 3);
    // A part that is anchored itself: no alternative of it may stand without its anchor.
    if (inner.starts_with('^') && find_outside(inner, 0, '|') == std::string_view::npos)
      inner.remove_prefix(1);
    parts.push_back({"^(?:" + std::string(inner) + ")", rest[2] == '='});
    rest.remove_prefix(end + 1);
  }
  if (parts.empty()) return {{pattern, true}};
  if (!rest.empty()) parts.push_back({"^" + std::string(rest), true});
  return parts;
}

}  // namespace qwench
