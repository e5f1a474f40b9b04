#include "text/tokenizer_pattern.h"

#include "text/tokenizer_fields.h"
#include "text/unicode_classes.h"

namespace qwench {
namespace {

/// DeepSeek's pattern for white space at the end of lines. A matcher tries it anew at each space of a long
/// run that does not end a line, which is quadratic.
constexpr std::string_view kEndSpaces = R"(\s+$)";

void find_end_spaces(std::string_view text, std::vector<ByteSpan>& matches) {
  const auto& properties = unicode::property_table();
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char* p = begin; p != end;) {
    const char* const run = p;
    const char* line_end = nullptr;  // the last one inside the run
    for (; p != end;) {
      const char* const place = p;
      if (!(properties[unicode::next_char(p)] & unicode::kWhiteSpace)) {
        p = place;
        break;
      }
      if (*place == '\n' && place != run) line_end = place;
    }
    if (p == end && p != run) line_end = end;
    if (line_end)
      matches.push_back({static_cast<size_t>(run - begin), static_cast<size_t>(line_end - begin)});
    if (p != end) unicode::next_char(p);
  }
}

}  // namespace

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
  if (regex_ && text_ == kEndSpaces) return find_end_spaces(text, matches);
  if (regex_) return regex_->find_all(text, matches);
  for (size_t i = text.find(text_); i != std::string_view::npos; i = text.find(text_, i + text_.size())) {
    matches.push_back({i, i + text_.size()});
  }
}

}  // namespace qwench
