#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "qwench/error.h"
#include "text/chat_template.h"

/// Any JSON as the messages, tools and variables of a template like those that are published: text or an
/// Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 16;
  if (size > kLimit) return 0;
  static const qwench::ChatTemplate chat = qwench::ChatTemplate::parse(
      "{%- if tools %}{% for t in tools %}{{ t|tojson(indent=2) }}{% endfor %}{% endif -%}"
      "{%- for m in messages %}<|im_start|>{{ m.role }}\n"
      "{%- if m.content is string %}{{ m.content|trim }}{% else %}{% for p in m.content %}{{ p.text }}{% "
      "endfor %}"
      "{% endif %}"
      "{%- for c in m.tool_calls or [] %}{{ c.function.name ~ (c.function.arguments|tojson) }}{% endfor -%}"
      "{%- if '</think>' in (m.content|string) %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% endif "
      "-%}"
      "<|im_end|>\n{% endfor %}",
      "messages");
  qwench::RenderLimits limits;
  limits.max_output = 1 << 20;
  limits.max_memory = 16 << 20;
  limits.max_steps = 200'000;
  try {
    const qwench::Json json =
        qwench::parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    qwench::ChatTemplateInput input;
    input.messages = json;
    if (json.is_object()) {
      input.messages = json.value("messages", qwench::Json::array());
      input.tools = json.value("tools", qwench::Json());
    }
    chat.render(input, limits);
  } catch (const qwench::Error&) {
  }
  return 0;
}
