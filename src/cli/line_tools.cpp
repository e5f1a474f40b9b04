#include "cli/line_tools.h"

#include <algorithm>

#include "engine/reasoning.h"
#include "text/tokenizer.h"

namespace qwench::cli {
namespace {

ToolDeclaration declaration(const Json& tool) {
  const Json& function = tool.is_object() && tool.contains("function") ? tool["function"] : tool;
  if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) {
    throw Error(ErrorKind::invalid_argument,
                "\"tools\": each must be {\"type\": \"function\", \"function\": {\"name\", ...}}");
  }
  return {function["name"].get<std::string>(), function.value("parameters", Json())};
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

Json line_tool_calls(const LineTools& tools, const std::string& text) {
  ReasoningSplitter splitter(tools.opens_reasoning);
  std::string answer;
  const auto add = [&](const std::vector<AnswerPart>& parts) {
    for (const AnswerPart& part : parts) {
      if (part.kind == TextKind::answer) answer += part.text;
    }
  };
  add(splitter.push(text));
  add(splitter.finish());
  Json calls = Json::array();
  for (const ToolCall& call : parse_tool_calls(tools.calls, answer).calls) {
    calls.push_back(
        {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return calls;
}

}  // namespace qwench::cli
