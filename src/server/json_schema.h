#pragma once

#include <string>

#include "core/json.h"

namespace qwench::server {

/// Checks a value against the part of JSON Schema (draft 2020-12) that this API is described in: type, enum,
/// minimum, maximum, exclusiveMinimum, minLength, maxLength, minItems, maxItems, items, properties, required,
/// additionalProperties, maxProperties, anyOf. Throws ApiError (400) whose param is the path of what is
/// wrong, such as "messages[0].role", and whose sentence says what was found and what was expected. What
/// /openapi.json shows is thus what is obeyed.
void check_schema(const Json& value, const Json& schema, const std::string& path);

/// "a number from 0 to 2", "true or false": what a schema takes, in words.
std::string describe_schema(const Json& schema);

}  // namespace qwench::server
