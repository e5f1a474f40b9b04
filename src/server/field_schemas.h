#pragma once

#include <initializer_list>
#include <utility>

#include "core/json.h"

/// The pieces of JSON Schema that the bodies of routes are described with (server/json_schema.h).
namespace qwench::server::fields {

inline constexpr int kLargestInt = 2147483647;

inline Json described(Json schema, const char* description) {
  schema["description"] = description;
  return schema;
}

inline Json nullable(const char* type, const char* description) {
  return described({{"type", {type, "null"}}}, description);
}

inline Json boolean(bool fallback, const char* description) {
  return described({{"type", {"boolean", "null"}}, {"default", fallback}}, description);
}

inline Json whole(int low, int high, const char* description) {
  return described({{"type", {"integer", "null"}}, {"minimum", low}, {"maximum", high}}, description);
}

inline Json number(double low, double high, const char* description) {
  return described({{"type", {"number", "null"}}, {"minimum", low}, {"maximum", high}}, description);
}

/// A field of an API that changes the answer and is not supported.
inline Json refused(const char* reason) { return described({{"type", "null"}}, reason); }

inline Json token_ids(const char* description, int fewest = 1) {
  return described({{"type", "array"},
                    {"minItems", fewest},
                    {"items", {{"type", "integer"}, {"minimum", 0}, {"maximum", kLargestInt}}}},
                   description);
}

inline Json either(std::initializer_list<Json> alternatives, const char* description) {
  return described({{"anyOf", Json(alternatives)}}, description);
}

inline Json object_of(Json properties, std::initializer_list<const char*> required) {
  Json schema{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (required.size() > 0) schema["required"] = Json(required);
  return schema;
}

inline void add(Json& properties, const Json& more) {
  for (const auto& [name, schema] : more.items()) properties[name] = schema;
}

inline Json model_field() {
  return nullable("string",
                  "The name of the served model, as /v1/models lists it; the served one when absent.");
}

/// A member that other servers have and that changes no answer here.
inline Json without_effect(std::initializer_list<const char*> types, const char* description) {
  return described({{"type", Json(types)}}, description);
}

inline Json text(const char* description) { return described({{"type", "string"}}, description); }

inline Json array_of(Json items, int most, const char* description) {
  return described({{"type", {"array", "null"}}, {"maxItems", most}, {"items", std::move(items)}},
                   description);
}

}  // namespace qwench::server::fields
