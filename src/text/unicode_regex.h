#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_span.h"

namespace qwench::unicode {

/// A compiled pattern of a tokenizer file. Immutable and thread-safe.
///
/// The syntax is Oniguruma's and the Unicode tables are our own (see unicode_regex_parser.h), the matcher is
/// PCRE2. To keep PCRE2's tables out of it, the characters are first mapped to the classes that the pattern
/// can tell apart (rarely more than twenty), one byte each, and the pattern is compiled over those bytes. A
/// pattern with back-references, which compare characters, runs on UTF-8 with every set written out.
class Regex {
 public:
  /// Throws Error (malformed, unsupported) that begins with `what`, for example a file name and a field.
  static std::shared_ptr<const Regex> compile(std::string_view pattern, const std::string& what);
  ~Regex();

  /// Appends the matches in `text` (well-formed UTF-8), leftmost first, none overlapping; an empty one
  /// directly behind another match is left out. Throws Error (unsupported) when the pattern backtracks
  /// without end.
  void find_all(std::string_view text, std::vector<ByteSpan>& matches) const;

 private:
  struct Program;
  explicit Regex(std::unique_ptr<Program> program);

  std::unique_ptr<Program> program_;
};

}  // namespace qwench::unicode
