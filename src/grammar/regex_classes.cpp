#include "grammar/regex_classes.h"

#include "text/unicode_classes.h"

namespace qwench {
namespace {

template <typename Holds>
CodeRanges scan(Holds&& holds) {
  std::vector<CodeRange> ranges;
  for (char32_t code = 0; code <= unicode::kLastCodePoint; ++code) {
    if (!holds(code)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == code) {
      ranges.back().last = code;
    } else {
      ranges.push_back({code, code});
    }
  }
  return CodeRanges(std::move(ranges));
}

RegexClass with_ascii(std::vector<CodeRange> ascii, const CodeRanges& others) {
  CodeRanges surely(std::move(ascii));
  CodeRanges maybe = surely.united(others);
  return {std::move(surely), std::move(maybe)};
}

}  // namespace

const RegexClass& regex_class(char name) {
  static const RegexClass digits =
      with_ascii({{'0', '9'}}, scan([](char32_t code) {
                   const uint16_t category = unicode::property_table()[code] & unicode::kCategoryMask;
                   return category == unicode::Nd || category == unicode::No || category == unicode::Nl;
                 }));
  // Dialects differ on marks, numbers and connectors: all that any of them counts.
  static const RegexClass word =
      with_ascii({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, scan([](char32_t code) {
                   if (code < 0x80) return false;
                   const uint16_t properties = unicode::property_table()[code];
                   const uint16_t category = properties & unicode::kCategoryMask;
                   return (properties & (unicode::kWord | unicode::kNumeric)) != 0 ||
                          category <= unicode::No || category == unicode::Pc || category == unicode::Cn;
                 }));
  static const RegexClass space = with_ascii(
      {{' ', ' '}, {'\t', '\r'}}, scan([](char32_t code) {
        return (unicode::property_table()[code] & unicode::kWhiteSpace) != 0 ||
               (code >= 0x1C && code <= 0x1F) || code == 0xFEFF || code == 0x180E || code == 0x200B;
      }));
  return name == 'd' ? digits : name == 'w' ? word : space;
}

const CodeRanges& regex_dot() {
  static const CodeRanges dot =
      CodeRanges({{'\n', '\r'}, {0x1C, 0x1E}, {0x85, 0x85}, {0x2028, 0x2029}}).complement();
  return dot;
}

}  // namespace qwench
