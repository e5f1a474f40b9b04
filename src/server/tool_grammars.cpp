#include "server/tool_grammars.h"

#include <algorithm>

#include "grammar/tool_grammar.h"
#include "server/api_error.h"

namespace qwench::server {
namespace {

constexpr size_t kMostEntries = 32;

}  // namespace

std::shared_ptr<const Grammar> ToolGrammars::get(ToolSyntax syntax, const ToolUse& use) {
  const bool required = use.choice == ToolUse::Choice::required;
  if (!required && use.strict.empty()) return nullptr;
  std::vector<ToolSignature> tools;
  Json key{static_cast<int>(syntax), required, use.parallel};
  for (const ToolDeclaration& tool : use.declared) {
    const bool keeps = required || use.strict.count(tool.name) != 0;
    tools.push_back({tool.name, keeps ? tool.parameters : Json()});
    key.push_back({tools.back().name, tools.back().parameters});
  }
  const std::string text = key.dump();
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == text; });
  if (known != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, known);
    return known->second;
  }
  try {
    entries_.emplace_front(text, compile_tool_calls(syntax, tools, use.parallel, required));
  } catch (const Error& error) {
    throw to_api_error(error, "tools");
  }
  if (entries_.size() > kMostEntries) entries_.pop_back();
  return entries_.front().second;
}

}  // namespace qwench::server
