#include "core/json.h"

#include <fmt/format.h>

#include "core/utf8.h"
#include "qwench/error.h"

namespace qwench {

Json parse_json(std::string_view text, const std::string& what, int max_depth) {
  // The depth is checked before a tree is built: building and destroying one must not go deep.
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) {
        throw Error(ErrorKind::malformed,
                    fmt::format("{}: JSON nested more than {} deep at byte {}", what, max_depth, i));
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorKind::malformed, fmt::format("{}: not valid JSON at byte {}", what, error.byte));
  } catch (const Json::exception&) {
    throw Error(ErrorKind::malformed, fmt::format("{}: holds a number that is out of range", what));
  }
}

}  // namespace qwench
