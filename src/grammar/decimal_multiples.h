#pragma once

#include <optional>
#include <string>

#include "grammar/grammar_builder.h"
#include "grammar/number_range.h"

namespace qwench {

/// A step with a fraction, such as 0.01: the multiples of a range for which it holds exactly, as decimals,
/// and as validators see it too, which divide doubles: 19.99 / 0.01 is no whole number to them, so it is left
/// out. Up to some thousands each multiple is tried; beyond, there are those whose quotient is exact whatever
/// they are: of a step that is a binary fraction (0.5, 0.25) all, of others those that end in .0, .25, .5 or
/// .75. Empty for a step that cannot be held so: of more than 9 digits behind the point or more than 1000
/// units of its last digit.
std::optional<GrammarBuilder::Expr> decimal_multiples(GrammarBuilder& builder, const NumberRange& range,
                                                      const Decimal& step);

/// Whether a validator takes the value for a multiple of the step, both numbers.
bool is_multiple(const Json& value, const Json& step);

}  // namespace qwench
