#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "text/byte_span.h"
#include "text/unicode_regex.h"

namespace qwench {

/// What a Split or Replace looks for: a string or a regular expression.
class TokenizerPattern {
 public:
  /// {"String": "..."} or {"Regex": "..."}; `where` is the file and field, for errors.
  static TokenizerPattern from_json(const Json& json, const std::string& where);
  static TokenizerPattern literal(std::string text);
  static TokenizerPattern regex(std::string_view pattern, const std::string& where);

  /// Appends the matches in `text`, which do not overlap.
  void find_all(std::string_view text, std::vector<ByteSpan>& matches) const;

  bool is_literal() const { return !regex_; }
  const std::string& text() const { return text_; }  ///< the literal, or the regular expression

 private:
  std::string text_;
  std::shared_ptr<const unicode::Regex> regex_;
};

}  // namespace qwench
