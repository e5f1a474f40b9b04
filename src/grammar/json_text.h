#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "grammar/grammar_builder.h"

namespace qwench {

/// The parts of JSON (RFC 8259) as they are generated: strings of valid UTF-8 with proper escapes, numbers of
/// bounded length, and between two tokens nothing, a space, or a newline with a bounded indentation, so that
/// nothing goes on forever but what has content.
class JsonText {
 public:
  using Expr = GrammarBuilder::Expr;

  explicit JsonText(GrammarBuilder& builder) : builder_(builder) {}

  Expr space();   ///< between two tokens
  Expr member();  ///< what parts a key from its value
  Expr comma();   ///< what parts two members or items

  /// A character of a string, escaped where it must be and not else.
  Expr encode(const CodeRanges& set);
  Expr any_char();  ///< any character, any escape
  Expr string();
  Expr integer();
  Expr number();
  Expr value();   ///< any
  Expr object();  ///< any
  Expr array();   ///< any

  /// A string's text, in quotes.
  Expr quoted(std::string_view text);
  /// One value, its containers spaced as all are.
  Expr constant(const Json& value);
  /// A string, in quotes, that is none of `names`.
  Expr other_key(const std::vector<std::string>& names);

 private:
  Expr other_than(const std::vector<std::u32string>& names, size_t at);
  Expr once(std::optional<GrammarBuilder::RuleId>& rule, const char* name, Expr (JsonText::*make)());
  Expr make_space();
  Expr make_any_char();
  Expr make_string();
  Expr make_value();
  Expr make_object();
  Expr make_array();

  GrammarBuilder& builder_;
  std::optional<GrammarBuilder::RuleId> space_;
  std::optional<GrammarBuilder::RuleId> string_;
  std::optional<GrammarBuilder::RuleId> value_;
  std::optional<GrammarBuilder::RuleId> object_;
  std::optional<GrammarBuilder::RuleId> array_;
  std::optional<Expr> any_char_;
};

}  // namespace qwench
