#include "server/tool_fields.h"

namespace qwench::server {
namespace {

constexpr int kLongestDescription = 1 << 16;

Json described(Json schema, const char* description) {
  schema["description"] = description;
  return schema;
}

Json closed_object(Json properties, Json required) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json function_name() {
  return described({{"type", "string"}, {"minLength", 1}, {"maxLength", 64}},
                   "Letters, digits, underscores and dashes.");
}

}  // namespace

Json tools_field() {
  Json function = closed_object(
      {{"name", function_name()},
       {"description",
        described({{"type", {"string", "null"}}, {"maxLength", kLongestDescription}}, "For the model.")},
       {"parameters",
        described({{"type", {"object", "null"}}}, "JSON Schema of the arguments; without, there are none.")},
       {"strict",
        described({{"type", {"boolean", "null"}}},
                  "Not shown to the model. Calls that tool_choice demands keep to the schema in any case.")}},
      {"name"});
  Json tool = closed_object({{"type", {{"enum", {"function"}}}}, {"function", std::move(function)}},
                            {"type", "function"});
  return described({{"type", {"array", "null"}}, {"maxItems", kMaxTools}, {"items", std::move(tool)}},
                   "Functions that the model may call: the chat template shows them to it.");
}

Json tool_choice_fields() {
  Json named = closed_object({{"type", {{"enum", {"function"}}}},
                              {"function", closed_object({{"name", function_name()}}, {"name"})}},
                             {"type", "function"});
  constexpr const char* kOld = "the older form of tools and tool_choice is not supported; use those";
  return {
      {"tool_choice",
       described(
           {{"anyOf", {{{"enum", {"none", "auto", "required"}}}, std::move(named), {{"type", "null"}}}}},
           "none: the model is not shown the tools; auto, the default with tools: it may call them; "
           "required, or a function's name: it must.")},
      {"parallel_tool_calls",
       described({{"type", {"boolean", "null"}}, {"default", true}},
                 "An answer may have several calls; with false, those behind the first are left out.")},
      {"functions", described({{"type", "null"}}, kOld)},
      {"function_call", described({{"type", "null"}}, kOld)},
  };
}

}  // namespace qwench::server
