#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.h"
#include "grammar/lookaheads.h"
#include "grammar/schema_compiler.h"
#include "grammar/string_formats.h"
#include "grammar/text_product.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Kind = StringCondition::Kind;

/// The dialects differ in what some classes hold; characters on which all agree.
const CodeRanges& plain_ascii() {
  static const CodeRanges plain({{0x20, 0x7E}});
  return plain;
}
const CodeRanges& without_line_ends() {
  static const CodeRanges plain = CodeRanges({{0, 0x1F}, {0x7F, 0x9F}, {0x2028, 0x2029}}).complement();
  return plain;
}

/// The texts of whose kind this bit is set: the sum of their ASCII characters, modulo the number of kinds.
GrammarBuilder::Expr texts_of_kind(GrammarBuilder& builder, const EncodeChars& encode, uint32_t bit,
                                   uint32_t kinds) {
  std::vector<std::vector<CodeRange>> letters(kinds);
  for (char32_t code = 0; code < 0x80; ++code) letters[code % kinds].push_back({code, code});
  letters[0].push_back({0x80, 0x10FFFF});
  std::vector<GrammarBuilder::Expr> chars;
  std::vector<GrammarBuilder::RuleId> rules;
  for (uint32_t kind = 0; kind < kinds; ++kind) {
    chars.push_back(encode(CodeRanges(letters[kind])));
    rules.push_back(builder.declare("kind"));
  }
  for (uint32_t kind = 0; kind < kinds; ++kind) {
    std::vector<GrammarBuilder::Expr> ways;
    if ((kind >> bit & 1) != 0) ways.push_back(builder.empty());
    for (uint32_t letter = 0; letter < kinds; ++letter)
      ways.push_back(builder.sequence({chars[letter], builder.ref(rules[(kind + letter) % kinds])}));
    builder.define(rules[kind], builder.either(std::move(ways)));
  }
  return builder.ref(rules[0]);
}

bool depends_on_dialect(const std::string& pattern) {
  return pattern.find_first_of("\\.") != std::string::npos;
}

}  // namespace

/// What a string schema asks for beside its type; lengths are one condition.
std::vector<StringCondition> SchemaCompiler::string_conditions(const Json& schema,
                                                               const std::string& path) const {
  std::vector<StringCondition> conditions;
  const auto add = [&](const Json& from, bool holds) {
    for (const char* keyword : {"pattern", "format"}) {
      if (!from.contains(keyword)) continue;
      if (!from[keyword].is_string()) fail(path, fmt::format("{}: expected a string", keyword));
      const std::string text = from[keyword].get<std::string>();
      const bool format = keyword == std::string_view("format");
      if (format && format_pattern(text) == nullptr) {
        if (says_nothing_of_strings(text)) continue;
        fail(path, unknown_format(text));
      }
      const auto parts = split_lookaheads(text);
      if (!format && holds && (parts.size() > 1 || !parts[0].holds)) {
        for (const PatternPart& part : parts)
          conditions.push_back({Kind::pattern, part.pattern, part.holds, ""});
        continue;
      }
      conditions.push_back({format ? Kind::format : Kind::pattern, text, holds, ""});
    }
    if (from.contains("enum")) conditions.push_back({Kind::values, from["enum"], holds, ""});
  };
  Json asserted = schema;
  asserted.erase("enum");
  add(asserted, true);
  if (schema.contains(kAlso)) {
    for (const Json& one : schema[kAlso]) {
      const bool negated = one.contains("not");
      add(negated ? one["not"] : one, !negated);
    }
  }
  const int least = count(schema, "minLength", path).value_or(0);
  const int most = count(schema, "maxLength", path).value_or(GrammarBuilder::kUnbounded);
  if (least > 0 || most != GrammarBuilder::kUnbounded)
    conditions.push_back({Kind::length, Json::array({least, most}), true, ""});
  return conditions;
}

GrammarBuilder::Expr SchemaCompiler::string_condition(GrammarBuilder& builder, const EncodeChars& encode,
                                                      const StringCondition& condition,
                                                      const std::string& path) const {
  switch (condition.kind) {
    case Kind::pattern:
      return holds_match(
          builder, parse_regex(builder, condition.value.get<std::string>(), encode, path + ": "), encode);
    case Kind::format:
      return matches_whole(builder, parse_regex(builder, format_pattern(condition.value.get<std::string>()),
                                                encode, path + ": "));
    case Kind::length:
      if (condition.value[1].get<int>() >= 0 && condition.value[1] < condition.value[0])
        return builder.nothing();
      return builder.repeat(encode(CodeRanges::all()), condition.value[0], condition.value[1]);
    case Kind::values: {
      std::vector<Expr> ways;
      for (const Json& value : condition.value) {
        if (!value.is_string()) continue;
        std::vector<Expr> letters;
        for (const char32_t code : to_utf32(value.get_ref<const std::string&>()))
          letters.push_back(encode(CodeRanges::one(code)));
        ways.push_back(builder.sequence(std::move(letters)));
      }
      return builder.either(std::move(ways));
    }
    case Kind::kind:
      return texts_of_kind(builder, encode, condition.value, uint32_t{1} << kKindBits);
    case Kind::schema:
      break;
  }
  JsonText json(builder);
  SchemaCompiler compiler(builder, json, root_);
  const Json strings = document_.merge({{"type", "string"}}, condition.value, path);
  return compiler.strings_without_quotes(strings, encode, path);
}

/// A schema of strings as their content: of what string_content() cannot say, the values that are listed.
GrammarBuilder::Expr SchemaCompiler::strings_without_quotes(const Json& schema, const EncodeChars& encode,
                                                            const std::string& path) {
  const Json flat = document_.flatten(schema, path);
  if (flat.is_boolean() && !flat.get<bool>()) return builder_.nothing();
  if (const auto values = document_.valid_values(flat, path))
    return string_condition(builder_, encode, {Kind::values, *values, true, ""}, path);
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!flat.contains(keyword)) continue;
    std::vector<Expr> ways;
    for (const Json& way : document_.alternatives(flat, keyword, path))
      ways.push_back(strings_without_quotes(way, encode, path));
    return builder_.either(std::move(ways));
  }
  if (const auto content = string_content(flat, encode, path)) return *content;
  return builder_.repeat(encode(CodeRanges::all()), 0, GrammarBuilder::kUnbounded);
}

TextProduct SchemaCompiler::string_product(const std::vector<StringCondition>& conditions,
                                           const std::string& path, StringSpelling spelling) {
  CodeRanges alphabet = CodeRanges::all();
  for (const StringCondition& condition : conditions) {
    if (condition.holds || condition.kind != Kind::pattern) continue;
    const bool depends = depends_on_dialect(condition.value.get<std::string>());
    alphabet = alphabet.intersected(depends ? plain_ascii() : without_line_ends());
  }
  const auto spelled = [spelling](GrammarBuilder& builder) -> EncodeChars {
    if (spelling == StringSpelling::json)
      return [&builder](const CodeRanges& set) { return JsonText(builder).encode(set); };
    return [&builder](const CodeRanges& set) { return builder.chars(set.without(CodeRanges::one(U'<'))); };
  };
  TextProduct product(builder_, [&](GrammarBuilder& builder) {
    return builder.repeat(spelled(builder)(alphabet), 0, GrammarBuilder::kUnbounded);
  });
  for (const StringCondition& condition : conditions) {
    product.add_condition([&](GrammarBuilder& builder) {
      return string_condition(builder, spelled(builder), condition, path + condition.place);
    });
  }
  return product;
}

GrammarBuilder::Expr SchemaCompiler::compile_string(const Json& schema, const std::string& path) {
  const bool by_length = !schema.contains("pattern") && !schema.contains("format") && !schema.contains(kAlso);
  const EncodeChars encode = [&](const CodeRanges& set) {
    return by_length ? json_.any_char() : json_.encode(set);
  };
  const auto content = string_content(schema, encode, path);
  if (!content) return json_.string();
  const Expr quote = builder_.literal("\"");
  return builder_.sequence({quote, *content, quote});
}

std::optional<GrammarBuilder::Expr> SchemaCompiler::string_content(const Json& schema,
                                                                   const EncodeChars& encode,
                                                                   const std::string& path,
                                                                   StringSpelling spelling) {
  std::vector<StringCondition> conditions = string_conditions(schema, path);
  if (conditions.empty()) return std::nullopt;
  if (conditions.size() == 1 && conditions[0].holds)
    return string_condition(builder_, encode, conditions[0], path);
  const auto meet_all = [&] {
    TextProduct product = string_product(conditions, path, spelling);
    uint32_t asked = 0;
    for (size_t i = 0; i < conditions.size(); ++i) {
      if (conditions[i].holds) asked |= uint32_t{1} << i;
    }
    return product.texts([&](uint32_t met) { return met == asked; });
  };
  // Beside other conditions a high maxLength may need more states than there may be: then shorter strings do.
  for (const int most : {256, 64}) {
    Json& length = conditions.back().value;
    const bool lowers = conditions.back().kind == Kind::length && length[1] > most && length[0] <= most;
    if (!lowers) break;
    try {
      return meet_all();
    } catch (const Error&) {
      length[1] = most;
    }
  }
  return meet_all();
}

}  // namespace qwench
