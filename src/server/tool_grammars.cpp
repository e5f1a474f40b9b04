#include "server/tool_grammars.h"

#include <algorithm>

#include "grammar/constraint_grammar.h"
#include "grammar/tool_grammar.h"
#include "server/api_error.h"

namespace qwench::server {
namespace {

constexpr size_t kMostEntries = 32;

}  // namespace

std::shared_ptr<const Grammar> ToolGrammars::get(ToolSyntax syntax, const ToolUse& use,
                                                 const std::optional<Constraint>& constraint) {
  const bool required = use.choice == ToolUse::Choice::required;
  if (!required && !use.restricted && use.strict.empty() && !constraint) return nullptr;
  std::vector<ToolSignature> tools;
  Json key{static_cast<int>(syntax), required, use.parallel};
  if (constraint) key.push_back({static_cast<int>(constraint->kind), constraint->text, constraint->choices});
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
  // What is wrong with it is said as without tools. Demanded calls leave no text that it could be about.
  if (constraint) compile_constraint(*constraint);
  try {
    entries_.emplace_front(
        text, compile_tool_calls(syntax, tools, use.parallel, required, constraint ? &*constraint : nullptr));
  } catch (const Error& error) {
    throw to_api_error(error, "tools");
  }
  if (entries_.size() > kMostEntries) entries_.pop_back();
  return entries_.front().second;
}

}  // namespace qwench::server
