#pragma once

#include "grammar/code_ranges.h"

namespace qwench {

/// What dialects agree that a class holds, and what some of them hold it to hold.
struct RegexClass {
  CodeRanges surely;
  CodeRanges maybe;

  RegexClass complement() const { return {maybe.complement(), surely.complement()}; }
};

/// 'd', 'w' or 's'.
const RegexClass& regex_class(char name);
/// What `.` matches: no line's end.
const CodeRanges& regex_dot();

}  // namespace qwench
