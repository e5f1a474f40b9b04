#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "qwench/engine.h"
#include "text/chat_template.h"
#include "text/tool_calls.h"

namespace qwench::cli {

/// The tools of one line of `run --jsonl`, and how its answer is read for their calls.
struct LineTools {
  ToolCallOptions calls;
  bool opens_reasoning = false;  ///< the prompt does
};

/// Absent where the line has no tools. Throws Error (invalid_argument) where one has no name, or the template
/// does not show tools.
std::optional<LineTools> read_line_tools(const Engine& engine, const ChatTemplateInput& chat,
                                         const std::optional<std::string>& template_name,
                                         const std::vector<TokenId>& prompt);

/// Holds a request's answer to what its tools and its constraint ask for together: calls, or text of that
/// form. Throws Error (invalid_argument).
void constrain_calls(LineTools& tools, std::optional<Constraint>& constraint);

/// The calls in an answer's text, behind its reasoning: [{"type", "function": {"name", "arguments"}}], as an
/// assistant's message holds them. `request`: what was asked.
Json line_tool_calls(const LineTools& tools, const Request& request, const Tokenizer& tokenizer,
                     const Result& result);

}  // namespace qwench::cli
