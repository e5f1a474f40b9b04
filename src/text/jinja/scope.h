#pragma once

#include <string>

#include "text/jinja/ast.h"

namespace qwench::jinja {

/// Gives every name of the parsed template its variable, and checks what can be checked before rendering:
/// that filters and tests exist, that break and continue stand in a loop, that nothing assigns to `loop`.
/// `name` is for the errors. Throws TemplateError.
Tree analyze(Body body, const std::string& name);

}  // namespace qwench::jinja
