#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qwench::cli {

/// The number of letters to insert, drop or change, or of neighbours to swap, that turns one word into the
/// other (optimal string alignment: Damerau 1964 without a second edit of what was swapped).
int edit_distance(std::string_view a, std::string_view b);

/// The one of `known` that `typed` was meant to be: at most two edits away (one for a word of three letters
/// or fewer), or what it is the beginning of.
std::optional<std::string> suggestion(std::string_view typed, const std::vector<std::string>& known);

}  // namespace qwench::cli
