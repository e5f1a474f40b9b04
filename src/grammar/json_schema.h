#pragma once

#include <memory>
#include <string_view>

#include "core/json.h"
#include "grammar/grammar.h"
#include "grammar/grammar_builder.h"
#include "grammar/json_text.h"

namespace qwench {

/// The JSON texts that are valid under a schema (JSON Schema, draft 2020-12, the subset of
/// docs/structured.md), spaced as JsonText does it, properties in the order of "properties". Every text of
/// the language is valid; not every valid one is of the language. Throws Error (invalid_argument) that names
/// the keyword and the place of what is not supported and would change which texts are valid.
std::shared_ptr<const Grammar> compile_json_schema(std::string_view schema);
std::shared_ptr<const Grammar> compile_json_schema(const Json& schema);
/// A schema's text, checked for its size and depth. Throws Error (invalid_argument).
Json parse_json_schema(std::string_view schema);
/// Any JSON object.
std::shared_ptr<const Grammar> compile_json_object();

/// The same as a part of a larger grammar; `json` is of the same builder.
GrammarBuilder::Expr add_json_schema(GrammarBuilder& builder, JsonText& json, const Json& schema);

}  // namespace qwench
