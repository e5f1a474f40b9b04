#include "server/tool_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/large_integers.h"
#include "server/body_fields.h"

namespace qwench::server {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // of all tools, as JSON

bool is_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

size_t index_of(const ToolUse& use, const std::string& name, const std::string& where) {
  const auto named = std::find_if(use.declared.begin(), use.declared.end(),
                                  [&](const ToolDeclaration& tool) { return tool.name == name; });
  if (named == use.declared.end()) refuse_field(where, "there is no tool of this name among tools");
  return static_cast<size_t>(named - use.declared.begin());
}

/// Of the tools those that are listed, in the order in which they are declared.
void keep_allowed(const Json& listed, ToolUse& use) {
  std::set<size_t> allowed;
  for (size_t i = 0; i < listed.size(); ++i) {
    allowed.insert(index_of(use, listed[i]["function"]["name"].get<std::string>(),
                            fmt::format("tool_choice.allowed_tools.tools[{}].function.name", i)));
  }
  use.restricted = allowed.size() < use.declared.size();
  std::vector<ToolDeclaration> kept;
  for (const size_t tool : allowed) kept.push_back(std::move(use.declared[tool]));
  use.declared = std::move(kept);
}

}  // namespace

Json read_tools(const Json& body) {
  const Json* given_tools = given(body, "tools");
  if (given_tools == nullptr || given_tools->empty()) return nullptr;
  if (given_tools->dump().size() > kMostBytes)
    refuse_field("tools", fmt::format("they are longer than {} bytes", kMostBytes));
  Json tools = Json::array();
  std::set<std::string> names;
  for (const Json& tool : *given_tools) {
    const std::string where = fmt::format("tools[{}].function.name", tools.size());
    const std::string name = tool["function"]["name"].get<std::string>();
    if (!is_name(name)) {
      refuse_field(where, fmt::format("found {}, expected letters, digits, underscores and dashes",
                                      Json(name).dump()));
    }
    if (!names.insert(name).second) refuse_field(where, fmt::format("there are two tools called {}", name));
    Json shown{{"type", "function"}, {"function", Json::object()}};
    for (const auto& [member, value] : tool["function"].items()) {
      if (member != "strict" && !value.is_null()) shown["function"][member] = value;
    }
    tools.push_back(std::move(shown));
  }
  return tools;
}

ToolUse read_tool_use(const Json& body, const Json& tools) {
  ToolUse use;
  const Json* choice = given(body, "tool_choice");
  if (tools.is_null()) {
    if (choice != nullptr && *choice != "none" && *choice != "auto")
      refuse_field("tool_choice", "only with tools");
    return use;
  }
  if (const Json* parallel = given(body, "parallel_tool_calls")) use.parallel = parallel->get<bool>();
  for (const Json& tool : tools) {
    const Json& function = tool["function"];
    const Json* parameters = given(function, "parameters");
    static const Json kNoArguments = {
        {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    use.declared.push_back({function["name"].get<std::string>(),
                            parameters != nullptr ? with_doubles(*parameters) : kNoArguments});
  }
  for (const Json& tool : body["tools"]) {
    const Json* strict = given(tool["function"], "strict");
    if (strict != nullptr && strict->get<bool>())
      use.strict.insert(tool["function"]["name"].get<std::string>());
  }
  use.choice = ToolUse::Choice::automatic;
  if (choice == nullptr || *choice == "auto") return use;
  if (*choice == "none") return {};
  use.choice = ToolUse::Choice::required;
  if (*choice == "required") return use;
  if ((*choice)["type"] == "allowed_tools") {
    const Json& allowed = (*choice)["allowed_tools"];
    if (allowed["mode"] == "auto") use.choice = ToolUse::Choice::automatic;
    keep_allowed(allowed["tools"], use);
    return use;
  }
  const std::string name = (*choice)["function"]["name"].get<std::string>();
  const size_t named = index_of(use, name, "tool_choice.function.name");
  use.declared = {use.declared[named]};
  use.parallel = false;
  return use;
}

}  // namespace qwench::server
