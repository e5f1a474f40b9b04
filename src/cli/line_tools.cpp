#include "cli/line_tools.h"

#include <algorithm>

#include "core/large_integers.h"
#include "engine/reasoning.h"
#include "grammar/constraint_grammar.h"
#include "grammar/tool_grammar.h"
#include "text/tokenizer.h"

namespace qwench::cli {
namespace {

const Json& function_of(const Json& tool) {
  return tool.is_object() && tool.contains("function") ? tool["function"] : tool;
}

ToolDeclaration declaration(const Json& tool) {
  const Json& function = function_of(tool);
  if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) {
    throw Error(ErrorKind::invalid_argument,
                "\"tools\": each must be {\"type\": \"function\", \"function\": {\"name\", ...}}");
  }
  const auto strict = function.find("strict");
  if (strict != function.end() && !strict->is_boolean() && !strict->is_null())
    throw Error(ErrorKind::invalid_argument, "\"tools\": strict must be true or false");
  return {function["name"].get<std::string>(), with_doubles(function.value("parameters", Json())),
          strict != function.end() && *strict == true};
}

}  // namespace

std::optional<LineTools> read_line_tools(const Engine& engine, const ChatTemplateInput& chat,
                                         const std::optional<std::string>& template_name,
                                         const std::vector<TokenId>& prompt) {
  if (!chat.tools.is_array() || chat.tools.empty()) return std::nullopt;
  const auto syntax = tool_syntax(engine.chat_templates()->select(template_name, true));
  if (!syntax) {
    throw Error(ErrorKind::invalid_argument,
                "\"tools\": the model's chat template does not show tools, so the model would not know them");
  }
  LineTools tools;
  tools.calls.syntax = *syntax;
  for (const Json& tool : chat.tools) tools.calls.tools.push_back(declaration(tool));
  if (const auto tokenizer = engine.tokenizer()) {
    constexpr size_t kLastTokens = 16;  // tokens: enough for a tag and the whitespace behind it
    const size_t begin = prompt.size() - std::min(prompt.size(), kLastTokens);
    tools.opens_reasoning = opens_reasoning(
        tokenizer->decode({prompt.begin() + static_cast<std::ptrdiff_t>(begin), prompt.end()}, false));
  }
  return tools;
}

void constrain_calls(LineTools& tools, std::optional<Constraint>& constraint) {
  const bool strict = std::any_of(tools.calls.tools.begin(), tools.calls.tools.end(),
                                  [](const ToolDeclaration& tool) { return tool.held_to_schema; });
  if (!strict && !constraint) return;
  if (constraint) compile_constraint(*constraint);  // what is wrong with it is said as without tools
  tools.calls.calls_or_content = constraint.has_value();
  std::vector<ToolSignature> signatures;
  for (const ToolDeclaration& tool : tools.calls.tools)
    signatures.push_back({tool.name, tool.held_to_schema ? tool.parameters : Json()});
  auto grammar = compile_tool_calls(tools.calls.syntax, signatures, tools.calls.parallel, false,
                                    constraint ? &*constraint : nullptr);
  constraint = Constraint{.kind = Constraint::Kind::compiled, .compiled = std::move(grammar)};
}

Json line_tool_calls(const LineTools& tools, const Request& request, const Tokenizer& tokenizer,
                     const Result& result) {
  ReasoningSplitter splitter(reasoning_start(tools.opens_reasoning, request.constraint, &tokenizer));
  std::string answer;
  const auto add = [&](const std::vector<AnswerPart>& parts) {
    for (const AnswerPart& part : parts) {
      if (part.kind == TextKind::answer) answer += part.text;
    }
  };
  add(splitter.push(*result.text, result.ids));
  add(splitter.finish());
  Json calls = Json::array();
  const bool cut = result.finish_reason != FinishReason::stop || result.stop_string;
  for (const ToolCall& call : parse_tool_calls(tools.calls, answer, cut).calls) {
    calls.push_back(
        {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return calls;
}

}  // namespace qwench::cli
