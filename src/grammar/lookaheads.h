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

}  // namespace qwench
