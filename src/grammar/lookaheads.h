#pragma once

#include <string>
#include <vector>

namespace qwench {

/// What a text has to meet, or must not.
struct PatternPart {
  std::string pattern;
  bool holds = true;
};

/// A pattern as several without the lookaheads that it begins with, "^(?=.*[A-Z])(?!.*x)[a-z]+$": what they
/// look at begins where the text does, so that each is a pattern of its own. Others are one part, themselves.
std::vector<PatternPart> split_lookaheads(const std::string& pattern);

/// A pattern, not of any dialect but for split_lookaheads(), of the texts in which none of `patterns` is
/// found. Those must be one part each.
std::string none_of(const std::vector<std::string>& patterns);

}  // namespace qwench
