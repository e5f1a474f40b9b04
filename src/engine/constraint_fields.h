#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "qwench/constraint.h"

namespace qwench {

/// Reads a field of a request, in JSON, that asks for a constraint: response_format, guided_json or its other
/// name json_schema, guided_regex, guided_choice, guided_grammar or grammar. Null and {"type": "text"} ask
/// for none. False where `name` is none of them. Throws Error (invalid_argument) that names the field: the
/// value has the wrong form, or another field has set `constraint` already.
bool read_constraint_field(const std::string& name, const Json& value, std::optional<Constraint>& constraint);

/// The names, for messages.
inline constexpr const char* kConstraintFields[] = {"response_format", "guided_json",   "json_schema",
                                                    "guided_regex",    "guided_choice", "guided_grammar",
                                                    "grammar"};
/// The fields of requests, of any API, that hold JSON Schemas: see refuse_rounded_integers().
inline constexpr const char* kSchemaFields[] = {"response_format", "guided_json", "json_schema",
                                                "format",          "text",        "output_config",
                                                "output_format",   "tools",       "functions"};

}  // namespace qwench
