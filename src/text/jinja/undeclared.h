#pragma once

#include <functional>
#include <set>
#include <string>

#include "text/jinja/ast.h"

namespace qwench::jinja {

/// Which of `names` the statements read before they assign them, inner scopes included, blocks excluded: so
/// is decided whether a macro has `caller`, `kwargs` and `varargs`, and a loop `loop`.
std::set<std::string> undeclared_names(const Body& body, std::set<std::string> names);

/// Calls f for every statement, outer ones first.
void for_each_statement(const Body& body, const std::function<void(Stmt&)>& f);

/// Calls f for each target that this statement itself assigns to.
void for_each_assigned(const Stmt& stmt, const std::function<void(const Target&)>& f);

std::set<std::string> target_names(const Target& target);

}  // namespace qwench::jinja
