#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "text/tool_calls.h"

namespace qwench::server {

/// What a request says of tools: which there are, and whether they are called.
struct ToolUse {
  enum class Choice {
    none,       ///< the model is not shown any; calls are not looked for
    automatic,  ///< it may call
    required,   ///< it must call one of the declared
  };

  Choice choice = Choice::none;
  std::vector<ToolDeclaration> declared;  ///< those that may be called; with a named choice that one alone
  bool restricted = false;                ///< the model is shown others too, which it may not call
  std::set<std::string>
      strict;  ///< names of those whose calls keep to the schema also when they are not required
  bool parallel = true;
};

/// `tools` of a body that its schema has been checked against, as chat templates get it: without `strict` and
/// without members that are null; null where there are none. Throws ApiError (400) on names that are not
/// allowed or come twice.
Json read_tools(const Json& body);

/// tool_choice and parallel_tool_calls, given what read_tools() returned. Throws ApiError (400).
ToolUse read_tool_use(const Json& body, const Json& tools);

}  // namespace qwench::server
