#include "grammar/grammar_cache.h"

#include <fmt/format.h>

#include "core/utf8.h"
#include "grammar/gbnf.h"
#include "grammar/grammar_builder.h"
#include "grammar/json_schema.h"
#include "grammar/regex_parser.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr size_t kMostChoices = 10000;

std::string key_of(const Constraint& constraint) {
  std::string key = fmt::format("{}:{}", static_cast<int>(constraint.kind), constraint.text);
  if (constraint.kind != Constraint::Kind::choice) return key;
  for (const std::string& choice : constraint.choices) key += fmt::format("{}:{}", choice.size(), choice);
  return key;
}

}  // namespace

std::shared_ptr<const Grammar> compile_regex(const std::string& pattern) {
  GrammarBuilder builder("the regular expression");
  if (pattern.size() > kLargestGrammarText)
    builder.fail(fmt::format("it has {} bytes, more than {}", pattern.size(), kLargestGrammarText));
  const EncodeChars encode = [&](const CodeRanges& set) { return builder.chars(set); };
  const GrammarBuilder::RuleId root = builder.declare("pattern");
  builder.define(root, matches_whole(builder, parse_regex(builder, pattern, encode, "")));
  return builder.build(root);
}

std::shared_ptr<const Grammar> compile_choice(const std::vector<std::string>& choices) {
  GrammarBuilder builder("the choices");
  if (choices.empty()) builder.fail("there are none");
  if (choices.size() > kMostChoices)
    builder.fail(fmt::format("there are {}, more than {}", choices.size(), kMostChoices));
  std::vector<GrammarBuilder::Expr> ways;
  for (const std::string& choice : choices) {
    if (choice.empty()) builder.fail("one of them is empty");
    if (!is_valid_utf8(choice)) builder.fail("one of them is not valid UTF-8");
    ways.push_back(builder.literal(choice));
  }
  const GrammarBuilder::RuleId root = builder.declare("choice");
  builder.define(root, builder.either(std::move(ways)));
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

std::shared_ptr<const Grammar> GrammarCache::get(const Constraint& constraint) {
  if (constraint.kind == Constraint::Kind::compiled) return compile_constraint(constraint);
  const std::string key = key_of(constraint);
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return entries_.front().grammar;
    }
  }
  std::shared_ptr<const Grammar> grammar = compile_constraint(constraint);
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return by_key_[key]->grammar;
  const size_t bytes = grammar->bytes() + 2 * key.size();
  if (bytes > most_bytes_) return grammar;
  entries_.push_front({key, grammar, bytes});
  by_key_[key] = entries_.begin();
  bytes_ += bytes;
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return grammar;
}

}  // namespace qwench
