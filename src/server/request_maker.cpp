#include "server/request_maker.h"

#include <algorithm>
#include <utility>

#include "engine/reasoning.h"
#include "server/service.h"

namespace qwench::server {
PromptText prompt_text(const Engine& engine) { return {engine.tokenizer(), engine.chat_templates()}; }

void RequestMaker::log_prompt(const std::string& request_id, const std::string& text) const {
  if (options_.log_prompts) log_.info("prompt", Json{{"request_id", request_id}, {"text", text}});
}

void RequestMaker::look_for_calls(const ToolUse& use, const PromptText& text, AnswerHead& head,
                                  Request& request) const {
  const ToolSyntax syntax = text.tool_syntax();
  head.tools = ToolCallOptions{.syntax = syntax,
                               .tools = use.declared,
                               .parallel = use.parallel,
                               .calls_or_content = request.constraint.has_value(),
                               .calls_only = use.choice == ToolUse::Choice::required};
  for (ToolDeclaration& tool : head.tools->tools) tool.held_to_schema = use.strict.count(tool.name) != 0;
  if (flags_tool_tags_special(text.required())) request.skip_special_tokens = false;
  auto grammar = tool_grammars_.get(syntax, use, request.constraint);
  if (grammar)
    request.constraint = Constraint{.kind = Constraint::Kind::compiled, .compiled = std::move(grammar)};
}

std::vector<Request> RequestMaker::make_requests(const Engine& engine, const GenerationBody& body,
                                                 GenerationJob& job) const {
  const PromptText text = prompt_text(engine);
  std::vector<Request> requests;
  const auto add = [&](std::vector<TokenId> ids) -> PromptChoices& {
    requests.push_back(body.settings);
    requests.back().ids = std::move(ids);
    if (options_.request_timeout > 0) {
      requests.back().deadline =
          job.arrival + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(options_.request_timeout));
    }
    PromptChoices choices;
    choices.count = body.settings.n;
    choices.prompt_tokens = static_cast<int>(requests.back().ids.size());
    choices.first_choice = static_cast<int>(job.prompts.size()) * body.settings.n;
    return job.prompts.emplace_back(choices);
  };
  if (body.chat) {
    const RenderedPrompt prompt = text.render(body.messages);
    log_prompt(job.request_id, prompt.text);
    PromptChoices& choices = add(text.encode(prompt));
    const ReasoningStart::Kind start = reasoning_of(body.messages, prompt.text);
    if (body.tools.choice != ToolUse::Choice::none)
      look_for_calls(body.tools, text, job.head, requests.back());
    auto& constraint = requests.back().constraint;
    if (constraint && start == ReasoningStart::Kind::open) {
      constraint->reasoning = Constraint::Reasoning::open;
    } else if (constraint && start == ReasoningStart::Kind::text) {
      const bool has_tools = !body.messages.input.tools.is_null();
      constraint->reasoning = reasoning_before_constraint(
          prompt.text, text.templates->select(std::nullopt, has_tools).source(), body.messages.input.kwargs);
    }
    choices.reasoning =
        start == ReasoningStart::Kind::none
            ? ReasoningStart{start}
            : reasoning_start(start == ReasoningStart::Kind::open, constraint, text.tokenizer.get());
    return requests;
  }
  for (const TextPrompt& prompt : body.prompts) {
    const auto* words = std::get_if<std::string>(&prompt);
    PromptChoices& choices =
        add(words != nullptr ? text.encode(*words) : std::get<std::vector<TokenId>>(prompt));
    const std::vector<TokenId>& ids = requests.back().ids;
    if (words != nullptr) log_prompt(job.request_id, *words);
    if (!body.echo) continue;
    choices.echo = words != nullptr ? *words : text.required().decode(ids, false);
    choices.echo_ids = ids;
  }
  return requests;
}

GenerationJob RequestMaker::make_job(const Engine& engine, const HttpRequest& request,
                                     const GenerationBody& body) const {
  GenerationJob job;
  job.request_id = request.id;
  job.arrival = std::chrono::steady_clock::now();
  job.settings = body.settings;
  job.make_answer = body.make_answer;
  job.timeout_seconds = options_.request_timeout;
  job.head.id = body.id_prefix + request.id;
  job.head.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  job.head.model = body.model.empty() ? options_.model_names.front() : body.model;
  job.head.chat = body.chat;
  job.head.stream = body.stream;
  job.head.include_usage = body.include_usage;
  job.head.include_logprobs = body.settings.logprobs.has_value();
  job.head.tokenizer = engine.tokenizer();
  if (!body.settings.stop.ignore_eos) job.head.stop_ids = engine.stop_ids();
  const auto& more = body.settings.stop.stop_token_ids;
  job.head.stop_ids.insert(job.head.stop_ids.end(), more.begin(), more.end());
  std::sort(job.head.stop_ids.begin(), job.head.stop_ids.end());
  return job;
}

}  // namespace qwench::server
