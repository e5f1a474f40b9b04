// Renders templates for jinja_differential.py: one JSON object a line in ({"source", "messages", "kwargs",
// ...}), one out ({"text"} or {"error", "kind", "message"}).
#include <iostream>
#include <string>

#include "core/json.h"
#include "text/chat_template.h"

namespace {

using qwench::Json;

const char* kind_name(qwench::TemplateErrorKind kind) {
  switch (kind) {
    case qwench::TemplateErrorKind::syntax:
      return "syntax";
    case qwench::TemplateErrorKind::raise_exception:
      return "raise_exception";
    case qwench::TemplateErrorKind::undefined:
      return "undefined";
    case qwench::TemplateErrorKind::security:
      return "security";
    case qwench::TemplateErrorKind::limit:
      return "limit";
    case qwench::TemplateErrorKind::other:
      break;
  }
  return "other";
}

Json render(const Json& row) {
  qwench::ChatTemplateInput input;
  input.messages = row.at("messages");
  input.kwargs = row.value("kwargs", Json::object());
  input.tools = row.value("tools", Json());
  input.now = qwench::LocalTime(std::chrono::seconds(row.value("now", int64_t{1741356309})));
  try {
    return {
        {"text",
         qwench::ChatTemplate::parse(row.at("source").get<std::string>(), "template").render(input).text}};
  } catch (const qwench::TemplateError& error) {
    return {
        {"error", error.what()}, {"kind", kind_name(error.template_kind())}, {"message", error.message()}};
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << render(qwench::parse_json(line, "stdin")).dump() << "\n" << std::flush;
  }
}
