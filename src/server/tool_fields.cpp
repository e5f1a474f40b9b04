#include "server/tool_fields.h"

#include "server/field_schemas.h"

namespace qwench::server {

using namespace fields;  // NOLINT(google-build-using-namespace): short words of one table

namespace {

constexpr int kLongestDescription = 1 << 16;

}  // namespace

Json tool_name_field(int longest) {
  return described({{"type", "string"}, {"minLength", 1}, {"maxLength", longest}},
                   "Letters, digits, underscores and dashes.");
}

Json tools_field(int longest_name) {
  Json function = object_of(
      {{"name", tool_name_field(longest_name)},
       {"description",
        described({{"type", {"string", "null"}}, {"maxLength", kLongestDescription}}, "For the model.")},
       {"parameters",
        described({{"type", {"object", "null"}}}, "JSON Schema of the arguments; without, there are none.")},
       {"strict",
        described({{"type", {"boolean", "null"}}},
                  "Calls keep to the schema, as all do that tool_choice demands. Not shown to the model.")}},
      {"name"});
  Json tool = object_of({{"type", {{"enum", {"function"}}}}, {"function", std::move(function)}},
                        {"type", "function"});
  return described({{"type", {"array", "null"}}, {"maxItems", kMaxTools}, {"items", std::move(tool)}},
                   "Functions that the model may call: the chat template shows them to it.");
}

Json tool_choice_fields(int longest_name) {
  Json named = object_of({{"type", {{"enum", {"function"}}}},
                          {"function", object_of({{"name", tool_name_field(longest_name)}}, {"name"})}},
                         {"type", "function"});
  Json allowed = object_of(
      {{"type", {{"enum", {"allowed_tools"}}}},
       {"allowed_tools", object_of({{"mode", {{"enum", {"auto", "required"}}}},
                                    {"tools", {{"type", "array"}, {"minItems", 1}, {"items", named}}}},
                                   {"mode", "tools"})}},
      {"type", "allowed_tools"});
  constexpr const char* kOld = "the older form of tools and tool_choice is not supported; use those";
  return {
      {"tool_choice",
       described({{"anyOf",
                   {{{"enum", {"none", "auto", "required"}}},
                    std::move(named),
                    std::move(allowed),
                    {{"type", "null"}}}}},
                 "none: the model is not shown the tools; auto, the default with tools: it may call them; "
                 "required, or a function's name: it must. allowed_tools: it may, or must, call those "
                 "listed, and is "
                 "shown all.")},
      {"parallel_tool_calls",
       described({{"type", {"boolean", "null"}}, {"default", true}},
                 "An answer may have several calls; with false, those behind the first are left out.")},
      {"functions", described({{"type", "null"}}, kOld)},
      {"function_call", described({{"type", "null"}}, kOld)},
  };
}

}  // namespace qwench::server
