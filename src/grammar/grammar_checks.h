#pragma once

#include <cstdint>
#include <optional>

#include "grammar/grammar.h"

namespace qwench {

inline constexpr uint16_t kNeverEnds = UINT16_MAX;

/// A rule that can begin with itself before any byte is taken.
std::optional<uint32_t> find_left_recursion(const Grammar& grammar);

/// Sets Node::depth, kNeverEnds where no finite text leads to the rule's end, and drops the edges that lead
/// there. Nothing that is left is a dead end.
void find_depths(Grammar& grammar);

/// For each node whether nothing but the end of its rule follows: a call from there needs no frame.
std::vector<bool> find_tails(const Grammar& grammar);

}  // namespace qwench
