#include "grammar/constraint_grammar.h"

#include <fmt/format.h>

#include "core/utf8.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex_parser.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr size_t kMostChoices = 10000;

Expr add_regex(GrammarBuilder& builder, const std::string& pattern) {
  if (pattern.size() > kLargestGrammarText)
    builder.fail(fmt::format("it has {} bytes, more than {}", pattern.size(), kLargestGrammarText));
  const EncodeChars encode = [&](const CodeRanges& set) { return builder.chars(set); };
  return matches_whole(builder, parse_regex(builder, pattern, encode, ""));
}

Expr add_choice(GrammarBuilder& builder, const std::vector<std::string>& choices) {
  if (choices.empty()) builder.fail("there are none");
  if (choices.size() > kMostChoices)
    builder.fail(fmt::format("there are {}, more than {}", choices.size(), kMostChoices));
  std::vector<Expr> ways;
  for (const std::string& choice : choices) {
    if (choice.empty()) builder.fail("one of them is empty");
    if (!is_valid_utf8(choice)) builder.fail("one of them is not valid UTF-8");
    ways.push_back(builder.literal(choice));
  }
  return builder.either(std::move(ways));
}

}  // namespace

std::shared_ptr<const Grammar> compile_regex(const std::string& pattern) {
  GrammarBuilder builder("the regular expression");
  const GrammarBuilder::RuleId root = builder.declare("pattern");
  builder.define(root, add_regex(builder, pattern));
  return builder.build(root);
}

std::shared_ptr<const Grammar> compile_choice(const std::vector<std::string>& choices) {
  GrammarBuilder builder("the choices");
  const GrammarBuilder::RuleId root = builder.declare("choice");
  builder.define(root, add_choice(builder, choices));
  return builder.build(root);
}

std::shared_ptr<const Grammar> compile_constraint(const Constraint& constraint) {
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return compile_json_schema(std::string_view(constraint.text));
    case Constraint::Kind::json_object:
      return compile_json_object();
    case Constraint::Kind::regex:
      return compile_regex(constraint.text);
    case Constraint::Kind::choice:
      return compile_choice(constraint.choices);
    case Constraint::Kind::grammar:
      return compile_gbnf(constraint.text);
    case Constraint::Kind::compiled:
      break;
  }
  if (!constraint.compiled) throw Error(ErrorKind::invalid_argument, "the constraint has no grammar");
  return constraint.compiled;
}

Expr add_constraint(GrammarBuilder& builder, JsonText& json, const Constraint& constraint) {
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return add_json_schema(builder, json, parse_json_schema(constraint.text));
    case Constraint::Kind::json_object:
      return json.object();
    case Constraint::Kind::regex:
      return add_regex(builder, constraint.text);
    case Constraint::Kind::choice:
      return add_choice(builder, constraint.choices);
    case Constraint::Kind::grammar:
      return builder.ref(add_gbnf(builder, constraint.text));
    case Constraint::Kind::compiled:
      break;
  }
  throw Error(ErrorKind::invalid_argument, "a compiled grammar cannot be a part of another");
}

}  // namespace qwench
