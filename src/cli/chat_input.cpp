#include "cli/chat_input.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "core/large_integers.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

[[noreturn]] void fail(std::string_view name, const Json& value, std::string_view expected) {
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: found a JSON {}, expected {}", name, json_type(value), expected));
}

Json read_list(std::string_view name, const Json& value, bool of_objects) {
  if (!value.is_array()) fail(name, value, "an array");
  for (size_t i = 0; of_objects && i < value.size(); ++i) {
    if (!value[i].is_object()) fail(fmt::format("{}[{}]", name, i), value[i], "an object");
  }
  return value;
}

std::string read_string(std::string_view name, const Json& value) {
  if (!value.is_string()) fail(name, value, "a string");
  return value.get<std::string>();
}

/// "2025-03-07", "2025-03-07T14:05", "2025-03-07 14:05:09", "2025-03-07T14:05:09.123456"
LocalTime read_time(std::string_view name, const std::string& text) {
  // Digits where the shape has 0, and its own characters elsewhere.
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000000";
  bool ok = text.size() == 10 || text.size() == 16 || text.size() == 19 ||
            (text.size() > 20 && text.size() <= kShape.size());
  for (size_t i = 0; ok && i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    ok = kShape[i] == '0' ? digit : text[i] == kShape[i] || (kShape[i] == 'T' && text[i] == ' ');
  }
  std::string digits = ok ? text : "";
  digits.resize(kShape.size(), '0');
  const auto number = [&](size_t at, size_t length) { return std::stoi(digits.substr(at, length)); };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!ok || !date.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: found \"{}\", expected an ISO time without a zone, e.g. 2025-03-07T14:05:09",
                            name, text.substr(0, 40)));
  }
  return std::chrono::local_days(date) + std::chrono::hours(number(11, 2)) +
         std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2)) +
         std::chrono::microseconds(number(20, 6));
}

}  // namespace

bool read_chat_field(std::string_view name, const Json& value, ChatTemplateInput& input) {
  const bool open = value.is_null();
  if (name == "messages") {
    input.messages = read_list(name, value, true);
  } else if (name == "tools") {
    if (!open) input.tools = read_list(name, value, false);
  } else if (name == "documents") {
    if (!open) input.documents = read_list(name, value, false);
  } else if (name == "add_generation_prompt") {
    if (open) return true;
    if (!value.is_boolean()) fail(name, value, "true or false");
    input.add_generation_prompt = value.get<bool>();
  } else if (name == "kwargs") {
    if (open) return true;
    if (!value.is_object()) fail(name, value, "an object");
    for (const auto& [key, variable] : value.items()) input.kwargs[key] = variable;
  } else if (name == "bos_token") {
    if (!open) input.bos_token = read_string(name, value);
  } else if (name == "eos_token") {
    if (!open) input.eos_token = read_string(name, value);
  } else if (name == "now") {
    if (!open) input.now = read_time(name, read_string(name, value));
  } else {
    return false;
  }
  return true;
}

void TemplateFlags::add_to(CommandLine& line) {
  const std::string group = "Chat template";
  line.add_flag("--think", think_, "ask for reasoning (enable_thinking in the template)").group(group);
  line.add_flag("--no-think", no_think_, "ask for an answer without reasoning").group(group);
  line.add_option("--kwargs", kwargs_text_, "further variables of the template, a JSON object")
      .value_name("JSON")
      .group(group);
  line.add_option("--template-name", name_text_, "which of several templates that the model brings")
      .value_name("NAME")
      .group(group);
}

void TemplateFlags::finish() {
  if (think_ && no_think_) throw UsageError("--think and --no-think exclude each other");
  if (!kwargs_text_.empty()) {
    try {
      kwargs_ = parse_json_exactly(kwargs_text_, "--kwargs");
    } catch (const Error& error) {
      throw UsageError(error.what());
    }
    if (!kwargs_.is_object())
      throw UsageError("--kwargs: expected a JSON object, e.g. '{\"enable_thinking\": false}'");
  }
  if (think_ || no_think_) {
    thinking_ = think_;
    kwargs_["enable_thinking"] = think_;
  }
  if (!name_text_.empty()) name_ = name_text_;
}

}  // namespace qwench::cli
