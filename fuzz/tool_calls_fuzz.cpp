// The first byte says how a model writes calls, the second how its text is cut into pieces; the rest is the
// text. Joined, what comes of the pieces is what comes of the whole.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_calls.h"

namespace {

std::string shown(const qwench::ToolMessage& message) {
  std::string text = "content:" + message.content;
  for (const auto& call : message.calls) text += "\ncall:" + call.name + "\n" + call.arguments;
  return text + (message.open ? "\nopen" : "");
}

void add(qwench::ToolMessage& message, const std::vector<qwench::ToolTextPart>& parts) {
  for (const auto& part : parts) {
    switch (part.kind) {
      case qwench::ToolTextPart::Kind::content:
        message.content += part.text;
        break;
      case qwench::ToolTextPart::Kind::call:
        message.calls.push_back({part.text, ""});
        break;
      case qwench::ToolTextPart::Kind::arguments:
        if (message.calls.empty()) std::abort();
        message.calls.back().arguments += part.text;
        break;
    }
    if (part.call >= 0 && part.call + 1 != static_cast<int>(message.calls.size())) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 14;
  if (size < 2 || size > kLimit) return 0;
  static const qwench::Json parameters = qwench::Json::parse(
      R"({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"},
          "c": {"type": ["array", "null"]}, "d": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "boolean"}}})");
  qwench::ToolCallOptions options;
  options.syntax = (data[0] & 1) != 0 ? qwench::ToolSyntax::qwen3_coder : qwench::ToolSyntax::hermes;
  options.parallel = (data[0] & 2) == 0;
  options.calls_or_content = (data[0] & 4) != 0;
  options.calls_only = (data[0] & 8) != 0;
  options.tools = {{"f", parameters, (data[0] & 16) != 0}, {"now", nullptr}};
  const bool cut = (data[0] & 32) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::string whole = shown(qwench::parse_tool_calls(options, text, cut));

  qwench::ToolCallParser parser(options);
  qwench::ToolMessage message;
  uint32_t random = data[1];
  for (size_t at = 0; at < text.size();) {
    random = random * 1664525 + 1013904223;
    const size_t step = 1 + (data[1] == 0 ? 0 : (random >> 24) % data[1]);
    add(message, parser.push(text.substr(at, step)));
    at += step;
  }
  add(message, parser.finish(cut));
  message.open = parser.open();
  if (shown(message) != whole) {
    std::fprintf(stderr, "in pieces:\n%s\nwhole:\n%s\n", shown(message).c_str(), whole.c_str());
    std::abort();
  }
  return 0;
}
