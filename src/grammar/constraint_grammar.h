#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/grammar_builder.h"
#include "grammar/json_text.h"
#include "qwench/constraint.h"

namespace qwench {

/// The grammar of a constraint. Throws Error (invalid_argument) with a sentence that says what is wrong with
/// it.
std::shared_ptr<const Grammar> compile_constraint(const Constraint& constraint);
std::shared_ptr<const Grammar> compile_regex(const std::string& pattern);
std::shared_ptr<const Grammar> compile_choice(const std::vector<std::string>& choices);

/// The same as a part of a larger grammar; `json` is of the same builder. Not for Constraint::Kind::compiled.
GrammarBuilder::Expr add_constraint(GrammarBuilder& builder, JsonText& json, const Constraint& constraint);

}  // namespace qwench
