#pragma once

#include "core/json.h"

namespace qwench {

/// The same schema with the references of "$ref" and "$dynamicRef" as pointers from its root, "#/$defs/name",
/// whatever "$id" and "$anchor" stand around them or at what they name (JSON Schema 2020-12, section 8.2).
/// What names nothing of the schema begins with kUnresolved, and is an error where it is met. Keywords that
/// begin with a control character, which none of the language does, are left out.
Json with_resolved_references(const Json& schema);

inline constexpr char kUnresolved = '\x01';

}  // namespace qwench
