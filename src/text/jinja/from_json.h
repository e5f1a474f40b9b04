#pragma once

#include "core/json.h"
#include "text/jinja/runtime.h"

namespace qwench::jinja {

/// The value of JSON data, all of it marked as input or as template text. Fails on data nested too deep.
Value from_json(Runtime& rt, const Json& json, bool from_input);

}  // namespace qwench::jinja
