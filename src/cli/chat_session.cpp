#include "cli/chat_session.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "core/mapped_file.h"
#include "engine/sampling_options.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

constexpr const char* kHelp =
    "/system [TEXT]        show or set the system message; \"\" removes it\n"
    "/reset                forget the conversation\n"
    "/undo                 forget the last exchange\n"
    "/retry                answer the last message again\n"
    "/history              show the conversation\n"
    "/save FILE            write the conversation as JSON\n"
    "/load FILE            go on with a conversation that was saved\n"
    "/params [NAME VALUE]  show the sampling settings, or set one, e.g. /params temperature 0.6\n"
    "/think, /nothink      ask for reasoning, or for answers without, where the model's template knows it\n"
    "/help                 this list\n"
    "/exit                 leave; Ctrl-D does too\n"
    "A line that ends with \\ goes on in the next; lines between two \"\"\" are one message. Ctrl-C stops an "
    "answer.\n";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::filesystem::path expanded(const std::string& file) {
  const char* home = std::getenv("HOME");
  if (file.starts_with("~/") && home != nullptr) return std::filesystem::path(home) / file.substr(2);
  return file;
}

void check_message(const Json& message) {
  if (!message.is_object()) invalid("a message of the file is not an object");
  const std::string role = string_field(message, "role");
  string_field(message, "content");
  check_fields(message, {"role", "content"});
  if (role != "system" && role != "user" && role != "assistant") {
    invalid(fmt::format("a message of the file has the role {}, expected system, user or assistant", role));
  }
}

}  // namespace

ChatSession::ChatSession(Settings settings, std::string system, SamplingOptions model_defaults)
    : settings_(std::move(settings)),
      system_(std::move(system)),
      model_defaults_(std::move(model_defaults)) {}

void ChatSession::add_user(const std::string& text) {
  messages_.push_back({{"role", "user"}, {"content", text}});
}

void ChatSession::add_assistant(const std::string& text) {
  messages_.push_back({{"role", "assistant"}, {"content", text}});
}

Json ChatSession::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  for (const Json& message : messages_) all.push_back(message);
  return all;
}

Json ChatSession::parameters() const {
  Json set = to_json(settings_.sampling.over(model_defaults_).resolve());
  add_to_json(settings_.stop, set);
  return set;
}

ChatSession::Reply ChatSession::command(const std::string& line) {
  const size_t space = line.find_first_of(" \t");
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : trimmed(line.substr(space));
  if (name == "/help" || name == "/?") return {.text = kHelp};
  if (name == "/exit" || name == "/quit" || name == "/bye") return {.text = "", .leave = true};
  if (name == "/system") return set_system(argument);
  if (name == "/reset" || name == "/clear") return reset();
  if (name == "/undo") return undo();
  if (name == "/retry") return retry();
  if (name == "/history") return history();
  if (name == "/save") return save(argument);
  if (name == "/load") return load(argument);
  if (name == "/params") return params(argument);
  if (name == "/think" || name == "/nothink") {
    settings_.thinking = name == "/think";
    return {.text = *settings_.thinking ? "reasoning is asked for\n" : "answers come without reasoning\n"};
  }
  invalid(fmt::format("there is no command {}; /help lists them", name));
}

ChatSession::Reply ChatSession::set_system(const std::string& argument) {
  if (argument.empty()) return {.text = system_.empty() ? "there is no system message\n" : system_ + "\n"};
  system_ = argument == "\"\"" ? "" : argument;
  return {.text = system_.empty() ? "the system message is removed\n" : "the system message is set\n"};
}

ChatSession::Reply ChatSession::reset() {
  messages_ = Json::array();
  return {.text = "the conversation is forgotten\n"};
}

ChatSession::Reply ChatSession::undo() {
  if (messages_.empty()) invalid("there is nothing to undo");
  while (!messages_.empty()) {
    const bool question = messages_.back()["role"] == "user";
    drop_last();
    if (question) break;
  }
  return {.text = "the last exchange is forgotten\n"};
}

ChatSession::Reply ChatSession::retry() {
  if (messages_.empty()) invalid("there is no message to answer again");
  if (messages_.back()["role"] == "assistant") drop_last();
  return {.text = "", .answer = true};
}

ChatSession::Reply ChatSession::history() const {
  std::string text;
  for (const Json& message : messages()) {
    text +=
        fmt::format("{}: {}\n", message["role"].get<std::string>(), message["content"].get<std::string>());
  }
  return {.text = text.empty() ? "the conversation is empty\n" : text};
}

ChatSession::Reply ChatSession::save(const std::string& file) const {
  if (file.empty()) invalid("/save needs a file name");
  const std::filesystem::path path = expanded(file);
  std::ofstream out(path, std::ios::binary);
  out << Json{{"messages", messages()}}.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) throw Error(ErrorKind::io, fmt::format("{}: cannot be written", path.string()));
  return {.text = fmt::format("{} saved to {}\n", plural(static_cast<int64_t>(messages().size()), "message"),
                              path.string())};
}

ChatSession::Reply ChatSession::load(const std::string& file) {
  if (file.empty()) invalid("/load needs a file name");
  const std::filesystem::path path = expanded(file);
  const Json content = parse_json(read_text_file(path), path.string());
  const Json* list = content.is_object() ? find(content, "messages") : &content;
  if (list == nullptr || !list->is_array())
    invalid(fmt::format("{}: expected {{\"messages\": [...]}}", path.string()));
  std::string system;
  Json messages = Json::array();
  for (const Json& message : *list) {
    check_message(message);
    if (message["role"] == "system" && messages.empty() && system.empty()) {
      system = message["content"].get<std::string>();
    } else {
      messages.push_back(message);
    }
  }
  system_ = std::move(system);
  messages_ = std::move(messages);
  return {.text = fmt::format("{} loaded from {}\n", plural(static_cast<int64_t>(list->size()), "message"),
                              path.string())};
}

ChatSession::Reply ChatSession::params(const std::string& argument) {
  if (!argument.empty()) {
    const size_t separator = argument.find_first_of(" \t=");
    const std::string name = argument.substr(0, separator);
    const std::string value = separator == std::string::npos ? "" : trimmed(argument.substr(separator + 1));
    if (value.empty())
      invalid(fmt::format("/params {}: a value is missing, e.g. /params temperature 0.6", name));
    const Json parsed = Json::accept(value) ? parse_json(value, name) : Json(value);
    Settings changed = settings_;
    if (!read_sampling_field(name, parsed, changed.sampling) &&
        !read_stop_field(name, parsed, changed.stop)) {
      invalid(fmt::format("there is no setting {}; /params lists them", name));
    }
    changed.sampling.resolve();
    check(changed.stop);
    settings_ = std::move(changed);
  }
  std::string text;
  const Json set = parameters();
  for (const auto& [name, value] : set.items()) {
    const bool drawn = name == "seed" && value.is_null() && answer_seed_;
    text +=
        fmt::format("{:<20} {}\n", name,
                    drawn ? fmt::format("{} (drawn for the last answer)", *answer_seed_) : to_line(value));
  }
  return {.text = text};
}

}  // namespace qwench::cli
