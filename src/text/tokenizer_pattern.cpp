#include "text/tokenizer_pattern.h"

#include "text/tokenizer_fields.h"

namespace qwench {

TokenizerPattern TokenizerPattern::from_json(const Json& json, const std::string& where) {
  const Fields fields(json, where);
  if (fields.has("String")) {
    std::string text = fields.text("String");
    // An empty string matches between all characters, as an empty expression does.
    return text.empty() ? regex("", where) : literal(std::move(text));
  }
  if (fields.has("Regex")) return regex(fields.text("Regex"), where);
  fields.fail("Regex", "is missing, and so is \"String\"; one of them is needed");
}

TokenizerPattern TokenizerPattern::literal(std::string text) {
  TokenizerPattern out;
  out.text_ = std::move(text);
  return out;
}

TokenizerPattern TokenizerPattern::regex(std::string_view pattern, const std::string& where) {
  TokenizerPattern out;
  out.text_ = pattern;
  out.regex_ = unicode::Regex::compile(pattern, where);
  return out;
}

void TokenizerPattern::find_all(std::string_view text, std::vector<ByteSpan>& matches) const {
  if (regex_) return regex_->find_all(text, matches);
  for (size_t i = text.find(text_); i != std::string_view::npos; i = text.find(text_, i + text_.size())) {
    matches.push_back({i, i + text_.size()});
  }
}

}  // namespace qwench
