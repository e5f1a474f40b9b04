#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <stdexcept>

#include "core/large_integers.h"
#include "core/utf8.h"
#include "text/jinja/ast.h"
#include "text/jinja/builtins.h"
#include "text/jinja/from_json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/scope.h"
#include "text/jinja/undeclared.h"

namespace qwench {
namespace {

constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

LocalTime local_time_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm fields{};
  localtime_r(&seconds, &fields);
  const auto offset = std::chrono::seconds(fields.tm_gmtoff);
  return LocalTime(std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()) + offset);
}

jinja::Context::Variables make_variables(jinja::Runtime& rt, const ChatTemplateInput& input) {
  jinja::Context::Variables variables;
  for (auto& [name, value] : jinja::make_globals(rt)) variables[name] = std::move(value);
  variables["messages"] = jinja::from_json(rt, input.messages, true);
  variables["tools"] = jinja::from_json(rt, input.tools, true);
  variables["documents"] = jinja::from_json(rt, input.documents, true);
  variables["add_generation_prompt"] = jinja::Value::boolean(input.add_generation_prompt);
  if (input.bos_token) variables["bos_token"] = rt.heap.string(to_valid_utf8(*input.bos_token));
  if (input.eos_token) variables["eos_token"] = rt.heap.string(to_valid_utf8(*input.eos_token));
  for (const auto& [name, value] : input.kwargs.items()) variables[name] = jinja::from_json(rt, value, true);
  return variables;
}

void check_kwargs(const Json& kwargs) {
  if (!kwargs.is_object()) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the chat template's kwargs must be an object, not {}", json_type(kwargs)));
  }
  for (const char* fixed : {"messages", "tools", "documents", "add_generation_prompt"}) {
    if (kwargs.contains(fixed)) {
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("the chat template's kwargs must not hold '{}': it is a field of its own", fixed));
    }
  }
}

std::vector<ByteSpan> complement(const std::vector<ByteSpan>& spans, size_t size) {
  std::vector<ByteSpan> rest;
  size_t at = 0;
  for (const ByteSpan& span : spans) {
    if (at < span.begin) rest.push_back({at, span.begin});
    at = span.end;
  }
  if (at < size) rest.push_back({at, size});
  return rest;
}

/// Spans in code points as spans in bytes, cut to the text.
std::vector<ByteSpan> to_bytes(const std::vector<ByteSpan>& spans, std::string_view text) {
  std::vector<size_t> points;
  for (const ByteSpan& span : spans) {
    points.push_back(span.begin);
    points.push_back(span.end);
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::map<size_t, size_t> bytes;
  size_t count = 0;
  auto next = points.begin();
  for (size_t at = 0; at < text.size() && next != points.end(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (count == *next) bytes[*next++] = at;
    ++count;
  }
  for (; next != points.end(); ++next) bytes[*next] = text.size();
  std::vector<ByteSpan> result;
  result.reserve(spans.size());
  for (const ByteSpan& span : spans) result.push_back({bytes.at(span.begin), bytes.at(span.end)});
  return result;
}

}  // namespace

struct ChatTemplate::Parsed {
  std::string source;
  std::string name;
  jinja::Tree tree;
};

const std::string& ChatTemplate::source() const { return parsed_->source; }
const std::string& ChatTemplate::name() const { return parsed_->name; }
bool ChatTemplate::reads(const std::string& variable) const {
  return !jinja::undeclared_names(parsed_->tree.body, {variable}).empty();
}

ChatTemplate ChatTemplate::parse(std::string source, std::string what) {
  if (source.size() > kMaxTemplateBytes) {
    throw TemplateError(
        TemplateErrorKind::limit, what,
        fmt::format("the template has {} bytes, more than {}", source.size(), kMaxTemplateBytes), 1, 1);
  }
  if (!is_valid_utf8(source)) source = to_valid_utf8(source);
  auto parsed = std::make_shared<Parsed>();
  jinja::Body body = jinja::Parser(source, what).parse();
  parsed->tree = jinja::analyze(std::move(body), what);
  parsed->source = std::move(source);
  parsed->name = std::move(what);
  return ChatTemplate(std::move(parsed));
}

RenderedPrompt ChatTemplate::render(const ChatTemplateInput& input, const RenderLimits& limits) const {
  check_kwargs(input.kwargs);
  jinja::Runtime rt(limits, input.now ? *input.now : local_time_now());
  const auto error = [&](TemplateErrorKind kind, const std::string& message) {
    return TemplateError(kind, parsed_->name, message, rt.position.line, rt.position.column);
  };
  try {
    jinja::Interpreter interpreter(rt, parsed_->tree, make_variables(rt, input));
    const jinja::TrackedText text = interpreter.run();
    RenderedPrompt prompt;
    prompt.trusted = complement(text.input_spans(), text.size());
    prompt.assistant_spans = to_bytes(interpreter.generation_spans(), text.view());
    prompt.text = text.str();
    return prompt;
  } catch (const jinja::Failure& failure) {
    throw error(failure.kind, failure.message);
  } catch (const std::bad_alloc&) {
    throw error(TemplateErrorKind::limit, "the template needs more memory than there is");
  } catch (const std::length_error&) {
    throw error(TemplateErrorKind::limit, "the template makes a value that is too large");
  }
}

}  // namespace qwench
