#pragma once

#include <string>
#include <string_view>

#include "core/json.h"

namespace qwench {

/// What the text of a parameter in Qwen3-Coder's form is to become.
enum class ParameterType { string, integer, number, boolean, json };

/// By the JSON Schema of the tool's arguments. A parameter that it does not know, or gives no type, is a
/// string; one of several types is one of them that the text reads as, `json`.
ParameterType parameter_type(const Json& schema, const std::string& name);

/// The text as JSON of this type; as a JSON string where it is none. A whole number of type number is written
/// without a fraction; true and false may begin with a capital, as Python writes them.
std::string parameter_json(ParameterType type, std::string_view text);

}  // namespace qwench
