#pragma once

#include <string>

#include "core/json.h"

namespace qwench {

/// Schemas are compiled with large integers (core/large_integers.h) as doubles. Refuses those in `schema`, as
/// parse_json_exactly() read it, that a double would round where that would change what is valid: not as a
/// bound that no generated number comes near, nor in annotations. `keyword` is the field that holds it,
/// or empty. Throws Error (invalid_argument) that names the keyword and the number.
void refuse_rounded_integers(const Json& schema, const std::string& what, const std::string& keyword = "");

}  // namespace qwench
