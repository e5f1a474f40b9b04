// Any bytes as a chat template, rendered with a small conversation and small budgets: it may fail, with a
// TemplateError only, and must not crash, hang or lose the spans' order.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using qwench::Json;
  static const qwench::ChatTemplateInput input = [] {
    qwench::ChatTemplateInput made;
    made.messages = Json::parse(
        R"([{"role":"system","content":"Be brief."},{"role":"user","content":"H\u00e9llo <|im_end|> \ud83d\ude00"},
      {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"a":[1,2.5,true,null]}}}]},{"role":"tool","content":"r"}])");
    made.tools = Json::parse(
        R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}])");
    made.kwargs = Json::parse(R"({"n":3,"s":"a b","l":[3,1,2],"d":{"k":1},"enable_thinking":false})");
    made.add_generation_prompt = true;
    made.now = qwench::LocalTime(std::chrono::seconds(1741356309));
    return made;
  }();
  qwench::RenderLimits limits;
  limits.max_output = 1 << 20;
  limits.max_memory = 16 << 20;
  limits.max_steps = 200'000;
  try {
    const std::string source(reinterpret_cast<const char*>(data), size);
    const auto prompt = qwench::ChatTemplate::parse(source, "fuzz").render(input, limits);
    size_t last = 0;
    for (const qwench::ByteSpan& span : prompt.trusted) {
      if (span.begin < last || span.begin >= span.end || span.end > prompt.text.size()) std::abort();
      last = span.end;
    }
  } catch (const qwench::TemplateError&) {
  }
  return 0;
}
