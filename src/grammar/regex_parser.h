#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/code_ranges.h"
#include "grammar/grammar_builder.h"

namespace qwench {

/// One character of a set, as it is written where the expression is used: inside JSON's quotes some are
/// escaped.
using EncodeChars = std::function<GrammarBuilder::Expr(const CodeRanges&)>;

/// An alternative of a whole pattern.
struct RegexBranch {
  GrammarBuilder::Expr expr;
  bool from_start;  ///< begins with ^
  bool to_end;      ///< ends with $
};

/// The syntax that Python's, JavaScript's and PCRE's regular expressions have in common: literals, `.`,
/// classes, \d \w \s and their complements, escapes (\n \xHH \uHHHH \u{H}), groups, |, * + ? {m,n} and their
/// lazy forms, ^ and $ at the ends of the pattern's alternatives. Where the dialects differ in what a class
/// holds, only what all agree on: \d, \w and \s are ASCII's, \D, \W and \S no character of Unicode's. Throws
/// Error by builder.fail for what is malformed and what no automaton of this kind has: lookaround, back
/// references, word boundaries, flags, possessive and atomic groups. `where` begins the sentence.
std::vector<RegexBranch> parse_regex(GrammarBuilder& builder, std::string_view pattern,
                                     const EncodeChars& encode, const std::string& where);

/// The texts that match as a whole.
GrammarBuilder::Expr matches_whole(GrammarBuilder& builder, const std::vector<RegexBranch>& branches);
/// The texts in which a match is found, as JSON Schema's "pattern" has it.
GrammarBuilder::Expr holds_match(GrammarBuilder& builder, const std::vector<RegexBranch>& branches,
                                 const EncodeChars& encode);

}  // namespace qwench
