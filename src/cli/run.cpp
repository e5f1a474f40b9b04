#include <fmt/format.h>

#include "cli/answer.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/jsonl.h"
#include "cli/run_options.h"
#include "cli/statistics.h"
#include "cli/terminal.h"
#include "engine/sampling_options.h"

namespace qwench::cli {
namespace {

std::vector<TokenId> prompt_ids(const Engine& engine, const std::string& text, const RunOptions& options,
                                std::optional<Constraint>& constraint) {
  if (options.raw) return engine.encode(text);
  if (engine.chat_templates() == nullptr) {
    if (!options.system.empty() || options.templates.given()) {
      throw Error(ErrorKind::not_found,
                  fmt::format("{} has no chat template, which --system, --think, --no-think, --kwargs and "
                              "--template-name are for",
                              options.model.path().string()));
    }
    return engine.encode(text);
  }
  ChatTemplateInput input;
  input.messages = Json::array();
  if (!options.system.empty()) input.messages.push_back({{"role", "system"}, {"content", options.system}});
  input.messages.push_back({{"role", "user"}, {"content", text}});
  input.add_generation_prompt = true;
  input.kwargs = options.templates.kwargs();
  std::vector<TokenId> ids = engine.encode_chat(input, options.templates.name());
  if (constraint) constraint->reasoning = constraint_begins(engine, ids, input, options.templates.name());
  return ids;
}

Json effective_set(const Engine& engine, const Request& request) {
  Json set = to_json(request.sampling.over(engine.generation_defaults()).resolve());
  add_to_json(request.stop, set);
  return set;
}

/// The whole answer at once, with all that is known of it.
Result answer_as_json(Engine& engine, const Request& request, const std::stop_token& stop) {
  std::vector<Result> results = engine.generate(std::span(&request, 1), {}, stop);
  Result& result = results.front();
  if (result.finish_reason != FinishReason::error) {
    Json object = to_json(result, request.logprobs.has_value());
    object["settings"] = effective_set(engine, request);
    object["timings"] = {{"prefill_seconds", result.timings.prefill_seconds},
                         {"decode_seconds", result.timings.decode_seconds}};
    print(to_line(object) + "\n");
  }
  return std::move(result);
}

void print_banner(const Engine& engine, const RunOptions& options) {
  if (!options.quiet) std::fputs((banner(engine.info()) + "\n").c_str(), stderr);
}

int run_prompt(Engine& engine, const std::string& text, const RunOptions& options) {
  Request request;
  request.constraint = options.constraint;
  request.ids = prompt_ids(engine, text, options, request.constraint);
  request.sampling = options.sampling.sampling();
  request.stop = options.sampling.stop();
  request.logprobs = options.logprobs;
  engine.check(request);
  draw_seed(request.sampling, engine.generation_defaults());
  print_banner(engine, options);
  if (options.model.verbose()) {
    std::fputs(fmt::format("qwench: settings {}\n", to_line(effective_set(engine, request))).c_str(), stderr);
  }
  const Interrupt interrupt(Interrupt::Second::ends_program);
  const Result result =
      options.json ? answer_as_json(engine, request, interrupt.token())
                   : stream_answer(engine, request, answer_style(options.hide_thinking), interrupt.token());
  if (result.finish_reason == FinishReason::error) {
    print_error(result.error);
    return 1;
  }
  if (!options.quiet)
    std::fputs(
        styled(statistics(result) + cut_note(result, request, engine.info()), kDim, shows_colours(stderr))
            .append("\n")
            .c_str(),
        stderr);
  return interrupt.happened() ? kInterruptedExitCode : 0;
}

}  // namespace

int run_command(const Arguments& arguments) {
  CommandLine line("run",
                   "Answers one prompt. Without MODEL: QWEN3_MODEL_PATH, ~/huggingface/Qwen3-0.6B, or the "
                   "model that ./dev fetch-models keeps.",
                   "  qwench run ~/models/Qwen3-0.6B \"Why is the sky blue?\"\n"
                   "  qwench run -p \"Why is the sky blue?\"\n"
                   "  qwench run model.gguf --temp 0 -n 100 -f question.txt\n"
                   "  git diff | qwench run model.gguf --system \"Write a commit message.\"\n"
                   "  qwench run model.gguf --raw \"Once upon a time\"\n"
                   "  qwench run model.gguf --jsonl < requests.jsonl > answers.jsonl\n");
  RunOptions options;
  options.add_to(line);
  if (!line.parse(arguments)) return 0;
  options.finish();

  const std::string text = options.jsonl ? "" : options.source.read_some(!options.raw);
  const std::unique_ptr<Engine> engine = options.model.load(!options.jsonl);
  if (!options.jsonl) return run_prompt(*engine, text, options);
  print_banner(*engine, options);
  return run_lines(*engine, options);
}

}  // namespace qwench::cli
