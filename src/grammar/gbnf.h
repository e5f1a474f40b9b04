#pragma once

#include <memory>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/grammar_builder.h"

namespace qwench {

/// A grammar in llama.cpp's notation (its grammars/README.md): `name ::= ...` with |, groups, * + ? {m,n},
/// "literals", [classes] with ranges and ^, `.` for any character, escapes (\n \t \r \\ \" \[ \] \xHH \uHHHH
/// \UHHHHHHHH), comments after #, and the rule `root` to begin with. Throws Error (invalid_argument) with the
/// line of what is wrong: also for left recursion.
std::shared_ptr<const Grammar> compile_gbnf(std::string_view text);
/// The same as rules of a larger grammar: the one that is its root.
GrammarBuilder::RuleId add_gbnf(GrammarBuilder& builder, std::string_view text);

inline constexpr size_t kLargestGrammarText = size_t{1} << 18;  ///< bytes, of every kind of grammar

}  // namespace qwench
