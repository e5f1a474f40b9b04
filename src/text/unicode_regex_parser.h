#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/unicode_classes.h"

namespace qwench::unicode {

/// A pattern in Oniguruma's syntax, taken apart: PCRE2 text, with places for sets of characters in between.
struct ParsedPattern {
  struct Part {
    std::string text;  ///< PCRE2 syntax, ASCII; used where set < 0
    int set = -1;      ///< index into sets: one character of that set
  };
  std::vector<Part> parts;
  std::vector<CodePointSet> sets;  ///< no two are equal
  bool has_backreferences = false;
};

/// Understands what tokenizer files use of Oniguruma's Ruby syntax (https://github.com/kkos/oniguruma,
/// doc/RE): classes with ranges, nesting, && and POSIX names, \p{...}, the escapes, groups, look-around,
/// atomic groups, options i, m and x, greedy, lazy and possessive repeats, anchors and back-references.
/// Throws Error (malformed or unsupported) that begins with `what`.
ParsedPattern parse_pattern(std::string_view pattern, const std::string& what);

}  // namespace qwench::unicode
