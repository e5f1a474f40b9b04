#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "cli/answer.h"
#include "cli/interrupt.h"
#include "cli/jsonl.h"
#include "cli/line_tools.h"
#include "cli/run_options.h"
#include "cli/statistics.h"
#include "cli/terminal.h"
#include "engine/constraint_fields.h"
#include "engine/sampling_options.h"

namespace qwench::cli {
namespace {

std::string known_fields() {
  std::vector<std::string> names = {"prompt", "ids", "logprobs", "skip_special"};
  names.insert(names.end(), kChatFields.begin(), kChatFields.end());
  Json settings = to_json(SamplingParams{});
  add_to_json(StopParams{}, settings);
  for (const auto& [name, value] : settings.items()) names.push_back(name);
  names.insert(names.end(), std::begin(kConstraintFields), std::end(kConstraintFields));
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

struct Line {
  Request request;
  std::optional<LineTools> tools;
};

/// A line's request; its settings go before the flags'. Throws Error.
Line read_request(const Engine& engine, const Json& line, const RunOptions& options) {
  Line read;
  Request& request = read.request;
  SamplingOptions sampling;
  ChatTemplateInput chat;
  chat.add_generation_prompt = true;
  chat.kwargs = options.templates.kwargs();
  request.stop = options.sampling.stop();
  request.logprobs = options.logprobs;
  bool chat_fields = false;
  std::optional<Constraint> own;
  for (const auto& [name, value] : line.items()) {
    if (name == "prompt" || name == "ids") continue;
    if (name == "logprobs") {
      request.logprobs.reset();
      if (!value.is_null()) request.logprobs = int_field(line, "logprobs", 0, 20);
    } else if (name == "skip_special") {
      request.skip_special_tokens = bool_field(line, "skip_special", true);
    } else if (read_constraint_field(name, value, own)) {
      continue;
    } else if (read_chat_field(name, value, chat)) {
      chat_fields = true;
    } else if (!read_sampling_field(name, value, sampling) && !read_stop_field(name, value, request.stop)) {
      invalid(fmt::format("the field \"{}\" is not known here; known are {}", printable(name.substr(0, 60)),
                          known_fields()));
    }
  }
  request.constraint = own ? own : options.constraint;
  request.sampling = sampling.over(options.sampling.sampling());

  const bool prompt = find(line, "prompt") != nullptr;
  const bool messages = find(line, "messages") != nullptr;
  const bool ids = find(line, "ids") != nullptr;
  if (prompt + messages + ids != 1)
    invalid("a line needs exactly one of \"prompt\", \"messages\" and \"ids\"");
  if (chat_fields && !messages) invalid("fields of the chat template need \"messages\"");
  if (prompt) {
    request.ids = engine.encode(string_field(line, "prompt"));
  } else if (messages) {
    request.ids = engine.encode_chat(chat, options.templates.name());
    read.tools = read_line_tools(engine, chat, options.templates.name(), request.ids);
    if (read.tools) constrain_calls(*read.tools, request.constraint);
    if (read.tools && flags_tool_tags_special(*engine.tokenizer())) request.skip_special_tokens = false;
    if (request.constraint) {
      request.constraint->reasoning = constraint_begins(engine, request.ids, chat, options.templates.name());
    }
  } else {
    request.ids = ids_field(line, "ids");
  }
  engine.check(request);
  return read;
}

}  // namespace

Json to_json(const Result& result, bool logprobs) {
  Json object{{"text", result.text ? Json(*result.text) : Json(nullptr)},
              {"ids", result.ids},
              {"finish_reason", name(result.finish_reason)},
              {"usage",
               {{"prompt_tokens", result.usage.prompt_tokens},
                {"completion_tokens", result.usage.completion_tokens},
                {"total_tokens", result.usage.prompt_tokens + result.usage.completion_tokens}}}};
  if (!logprobs) return object;
  Json& list = object["logprobs"] = Json::array();
  for (const TokenLogprob& token : result.logprobs) {
    Json top = Json::array();
    for (const auto& [id, logprob] : token.top) top.push_back({id, logprob});
    list.push_back({{"id", token.id}, {"logprob", token.logprob}, {"top", std::move(top)}});
  }
  return object;
}

int run_lines(Engine& engine, const RunOptions& options) {
  std::vector<Json> answers;
  std::vector<Request> requests;
  std::vector<std::optional<LineTools>> tools;  // [requests]
  std::vector<size_t> places;                   // of the requests, among the answers
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      Line read = read_request(engine, parse_line(line), options);
      requests.push_back(std::move(read.request));
      tools.push_back(std::move(read.tools));
      places.push_back(answers.size());
      answers.emplace_back();
    } catch (const Error& error) {
      answers.push_back(error_line(error.what()));
    }
  }
  const Interrupt interrupt(Interrupt::Second::ends_program);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Result> results = engine.generate(requests, {}, interrupt.token());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (size_t i = 0; i < results.size(); ++i) {
    const bool failed = results[i].finish_reason == FinishReason::error;
    answers[places[i]] =
        failed ? error_line(results[i].error) : to_json(results[i], requests[i].logprobs.has_value());
    if (!failed && tools[i] && results[i].text)
      answers[places[i]]["tool_calls"] =
          line_tool_calls(*tools[i], requests[i], *engine.tokenizer(), results[i]);
  }
  for (const Json& answer : answers) print(to_line(answer) + "\n");
  if (!options.quiet) std::fputs((batch_statistics(results, seconds) + "\n").c_str(), stderr);
  return interrupt.happened() ? kInterruptedExitCode : 0;
}

}  // namespace qwench::cli
