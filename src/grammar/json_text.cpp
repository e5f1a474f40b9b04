#include "grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.h"

namespace qwench {
namespace {

constexpr int kMostIndent = 32;

const CodeRanges& plain_chars() {
  static const CodeRanges plain = CodeRanges({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}).complement();
  return plain;
}

std::string escaped(char32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
  }
}

}  // namespace

JsonText::Expr JsonText::once(std::optional<GrammarBuilder::RuleId>& rule, const char* name,
                              Expr (JsonText::*make)()) {
  if (!rule) {
    rule = builder_.declare(name);
    builder_.define(*rule, (this->*make)());
  }
  return builder_.ref(*rule);
}

JsonText::Expr JsonText::space() { return once(space_, "JSON space", &JsonText::make_space); }
JsonText::Expr JsonText::string() { return once(string_, "JSON string", &JsonText::make_string); }
JsonText::Expr JsonText::value() { return once(value_, "JSON value", &JsonText::make_value); }
JsonText::Expr JsonText::object() { return once(object_, "JSON object", &JsonText::make_object); }
JsonText::Expr JsonText::array() { return once(array_, "JSON array", &JsonText::make_array); }

JsonText::Expr JsonText::make_space() {
  const Expr indent = builder_.either({builder_.repeat(builder_.literal(" "), 0, kMostIndent),
                                       builder_.repeat(builder_.literal("\t"), 1, kMostIndent / 2)});
  return builder_.optional(
      builder_.either({builder_.literal(" "), builder_.sequence({builder_.literal("\n"), indent})}));
}

JsonText::Expr JsonText::member() {
  return builder_.sequence({builder_.literal(":"), builder_.optional(builder_.literal(" "))});
}

JsonText::Expr JsonText::comma() { return builder_.sequence({builder_.literal(","), space()}); }

JsonText::Expr JsonText::encode(const CodeRanges& set) {
  std::vector<Expr> ways{builder_.chars(set.intersected(plain_chars()))};
  const CodeRanges special = set.without(plain_chars());
  for (const CodeRange& range : special.ranges()) {
    for (char32_t code = range.first; code <= range.last; ++code)
      ways.push_back(builder_.literal(escaped(code)));
  }
  return builder_.either(std::move(ways));
}

JsonText::Expr JsonText::any_char() {
  if (!any_char_) any_char_ = make_any_char();
  return *any_char_;
}

JsonText::Expr JsonText::make_any_char() {
  const auto set = [&](std::vector<CodeRange> ranges) {
    return builder_.chars(CodeRanges(std::move(ranges)));
  };
  const Expr hex = set({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  const auto hexes = [&](int count) { return builder_.repeat(hex, count, count); };
  const Expr d = set({{'d', 'd'}, {'D', 'D'}});
  const Expr no_surrogate = builder_.either(
      {builder_.sequence({set({{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}}), hexes(3)}),
       builder_.sequence({d, set({{'0', '7'}}), hexes(2)})});
  const Expr pair = builder_.sequence({d, set({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}), hexes(2),
                                       builder_.literal("\\u"), d, set({{'c', 'f'}, {'C', 'F'}}), hexes(2)});
  const Expr escape =
      builder_.either({set({{'"', '"'},
                            {'\\', '\\'},
                            {'/', '/'},
                            {'b', 'b'},
                            {'f', 'f'},
                            {'n', 'n'},
                            {'r', 'r'},
                            {'t', 't'}}),
                       builder_.sequence({builder_.literal("u"), builder_.either({no_surrogate, pair})})});
  return builder_.either(
      {builder_.chars(plain_chars()), builder_.sequence({builder_.literal("\\"), escape})});
}

JsonText::Expr JsonText::make_string() {
  const Expr quote = builder_.literal("\"");
  return builder_.sequence({quote, builder_.repeat(any_char(), 0, GrammarBuilder::kUnbounded), quote});
}

JsonText::Expr JsonText::integer() {
  const Expr digit = builder_.chars(CodeRanges({{'0', '9'}}));
  return builder_.either({builder_.literal("0"), builder_.sequence({builder_.optional(builder_.literal("-")),
                                                                    builder_.chars(CodeRanges({{'1', '9'}})),
                                                                    builder_.repeat(digit, 0, 17)})});
}

JsonText::Expr JsonText::number() {
  const Expr digit = builder_.chars(CodeRanges({{'0', '9'}}));
  const Expr whole = builder_.either(
      {builder_.literal("0"),
       builder_.sequence({builder_.chars(CodeRanges({{'1', '9'}})), builder_.repeat(digit, 0, 17)})});
  const Expr fraction = builder_.sequence({builder_.literal("."), builder_.repeat(digit, 1, 17)});
  const Expr exponent =
      builder_.sequence({builder_.chars(CodeRanges({{'e', 'e'}, {'E', 'E'}})),
                         builder_.optional(builder_.chars(CodeRanges({{'+', '+'}, {'-', '-'}}))),
                         builder_.repeat(digit, 1, 2)});
  return builder_.sequence({builder_.optional(builder_.literal("-")), whole, builder_.optional(fraction),
                            builder_.optional(exponent)});
}

JsonText::Expr JsonText::make_value() {
  return builder_.either({builder_.literal("null"), builder_.literal("true"), builder_.literal("false"),
                          number(), string(), array(), object()});
}

JsonText::Expr JsonText::make_array() {
  const Expr more = builder_.sequence({comma(), value()});
  const Expr items =
      builder_.sequence({value(), builder_.repeat(more, 0, GrammarBuilder::kUnbounded), space()});
  return builder_.sequence({builder_.literal("["), space(), builder_.optional(items), builder_.literal("]")});
}

JsonText::Expr JsonText::make_object() {
  const Expr one = builder_.sequence({string(), member(), value()});
  const Expr more = builder_.sequence({comma(), one});
  const Expr members =
      builder_.sequence({one, builder_.repeat(more, 0, GrammarBuilder::kUnbounded), space()});
  return builder_.sequence(
      {builder_.literal("{"), space(), builder_.optional(members), builder_.literal("}")});
}

JsonText::Expr JsonText::quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char32_t code : to_utf32(text)) {
    if (plain_chars().contains(code)) {
      append_utf8(literal, code);
    } else {
      literal += escaped(code);
    }
  }
  return builder_.literal(literal + "\"");
}

JsonText::Expr JsonText::constant(const Json& value) {
  if (value.is_string()) return quoted(value.get_ref<const std::string&>());
  if (!value.is_structured()) return builder_.literal(value.dump());
  const bool object = value.is_object();
  std::vector<Expr> parts{builder_.literal(object ? "{" : "["), space()};
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) parts.push_back(comma());
    first = false;
    if (object) parts.insert(parts.end(), {quoted(key), member()});
    parts.push_back(constant(item));
  }
  if (!first) parts.push_back(space());
  parts.push_back(builder_.literal(object ? "}" : "]"));
  return builder_.sequence(std::move(parts));
}

JsonText::Expr JsonText::other_key(const std::vector<std::string>& names) {
  const Expr quote = builder_.literal("\"");
  std::vector<std::u32string> codes;
  for (const std::string& name : names) codes.push_back(to_utf32(name));
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return builder_.sequence({quote, other_than(codes, 0), quote});
}

/// The ends of strings that are none of `names`, ascending, which agree in `at` characters.
JsonText::Expr JsonText::other_than(const std::vector<std::u32string>& names, size_t at) {
  if (names.empty()) return builder_.repeat(encode(CodeRanges::all()), 0, GrammarBuilder::kUnbounded);
  std::vector<Expr> ways;
  CodeRanges taken;
  size_t first = 0;
  if (names[0].size() == at) {
    ++first;
  } else {
    ways.push_back(builder_.empty());
  }
  while (first < names.size()) {
    const char32_t code = names[first][at];
    std::vector<std::u32string> alike;
    for (; first < names.size() && names[first][at] == code; ++first) alike.push_back(names[first]);
    const CodeRanges one = CodeRanges::one(code);
    taken = taken.united(one);
    ways.push_back(builder_.sequence({encode(one), builder_.rule("JSON key", other_than(alike, at + 1))}));
  }
  ways.push_back(builder_.sequence({encode(CodeRanges::all().without(taken)), other_than({}, at + 1)}));
  return builder_.either(std::move(ways));
}

}  // namespace qwench
