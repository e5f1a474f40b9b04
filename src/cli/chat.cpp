#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "cli/answer.h"
#include "cli/chat_input.h"
#include "cli/chat_session.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/model_flags.h"
#include "cli/multi_line.h"
#include "cli/sampling_flags.h"
#include "cli/statistics.h"
#include "cli/terminal.h"
#include "engine/sampling_options.h"

namespace qwench::cli {
namespace {

struct ChatOptions {
  ModelFlags model;
  SamplingFlags sampling;
  TemplateFlags templates;
  std::string system;
  std::string load;
  bool hide_thinking = false;
  bool quiet = false;
};

class Chat {
 public:
  Chat(Engine& engine, const ChatOptions& options)
      : engine_(engine),
        options_(options),
        session_({options.sampling.sampling(), options.sampling.stop(), options.templates.thinking()},
                 options.system, engine.generation_defaults()) {}

  ChatSession& session() { return session_; }

  /// Returns the exit code.
  int run() {
    std::string message;
    while (read_message(message)) {
      if (message.empty()) continue;
      try {
        if (ChatSession::is_command(message)) {
          const ChatSession::Reply reply = session_.command(message);
          print(reply.text);
          if (reply.leave) return 0;
          if (reply.answer) answer();
        } else {
          session_.add_user(message);
          answer();
        }
      } catch (const Error& error) {
        print_error(error.what());
      }
      if (interrupted_ && !is_terminal(stdin)) return kInterruptedExitCode;
    }
    return 0;
  }

 private:
  /// False at the end of input. What Ctrl-C interrupts is dropped.
  bool read_message(std::string& message) {
    MultiLine lines;
    std::string line;
    while (true) {
      switch (editor_.read(lines.open() ? "... " : ">>> ", line)) {
        case LineEditor::Outcome::end:
          message = lines.take();
          return !message.empty();
        case LineEditor::Outcome::interrupted:
          lines.take();
          continue;
        case LineEditor::Outcome::line:
          editor_.remember(line);
          if (lines.add(line, editor_.paste_goes_on())) {
            message = lines.take();
            return true;
          }
      }
    }
  }

  Request next_request() const {
    ChatTemplateInput input;
    input.messages = session_.messages();
    input.add_generation_prompt = true;
    input.kwargs = options_.templates.kwargs();
    const ChatSession::Settings& settings = session_.settings();
    if (settings.thinking) input.kwargs["enable_thinking"] = *settings.thinking;
    Request request;
    request.ids = engine_.encode_chat(input, options_.templates.name());
    request.sampling = settings.sampling;
    request.stop = settings.stop;
    check(request);
    return request;
  }

  void check(const Request& request) const {
    try {
      engine_.check(request);
    } catch (const Error& error) {
      if (request.ids.size() < static_cast<size_t>(engine_.info().context)) throw;
      throw Error(
          error.kind(),
          fmt::format("{}; here, /reset forgets the conversation and /undo its last exchange", error.what()));
    }
  }

  /// Answers the last message. Where that fails, the message is dropped, so that the conversation can go on.
  void answer() {
    try {
      const Interrupt interrupt(Interrupt::Second::asks_again);
      Request request = next_request();
      const bool given = request.sampling.seed.has_value();
      draw_seed(request.sampling, engine_.generation_defaults());
      session_.set_answer_seed(given ? std::nullopt : request.sampling.seed);
      const Result result =
          stream_answer(engine_, request, answer_style(options_.hide_thinking), interrupt.token());
      interrupted_ = interrupt.happened();
      if (result.finish_reason == FinishReason::error) throw Error(ErrorKind::unsupported, result.error);
      session_.add_assistant(result.text.value_or(""));
      if (options_.quiet) return;
      std::string note = statistics(result);
      if (result.finish_reason == FinishReason::cancelled) note += " | stopped";
      note += cut_note(result, request, engine_.info());
      std::fputs(styled(note, kDim, shows_colours(stderr)).append("\n").c_str(), stderr);
    } catch (const Error&) {
      session_.drop_last();
      throw;
    }
  }

  Engine& engine_;
  const ChatOptions& options_;
  ChatSession session_;
  LineEditor editor_;
  bool interrupted_ = false;  // the last answer was
};

void leave(int) { ::_exit(kInterruptedExitCode); }

}  // namespace

int chat_command(const Arguments& arguments) {
  CommandLine line("chat",
                   "Talks with a model; /help there lists the commands. Without MODEL: QWEN3_MODEL_PATH, "
                   "~/huggingface/Qwen3-0.6B, or the model that ./dev fetch-models keeps.",
                   "  qwench chat ~/models/Qwen3-0.6B\n"
                   "  qwench chat model.gguf --system \"You are terse.\" --temp 0.6\n"
                   "  qwench chat model.gguf --no-think --load talk.json\n");
  ChatOptions options;
  options.model.add_to(line, ModelFlags::Default::search, true);
  options.model.add_speculation_to(line);
  line.add_option("--system", options.system, "the system message").value_name("TEXT");
  line.add_option("--load", options.load, "go on with a conversation that /save wrote").value_name("FILE");
  line.add_flag("--hide-thinking", options.hide_thinking, "do not show reasoning (<think> blocks)");
  line.add_flag("-q,--quiet", options.quiet, "nothing but errors on stderr");
  options.templates.add_to(line);
  options.sampling.add_to(line);
  if (!line.parse(arguments)) return 0;
  options.sampling.finish();
  options.templates.finish();
  options.model.finish();
  if (!options.system.empty() && !options.load.empty())
    throw UsageError("--system and --load exclude each other: the file has its own");
  if (options.model.verbose() && options.quiet) throw UsageError("--verbose and --quiet exclude each other");

  const std::unique_ptr<Engine> engine = options.model.load(/*quick_start=*/true);
  if (engine->tokenizer() == nullptr || engine->chat_templates() == nullptr) {
    throw Error(ErrorKind::not_found,
                fmt::format("{} has no {}, so it cannot chat; qwench run can still use it",
                            options.model.path().string(),
                            engine->tokenizer() == nullptr ? "tokenizer" : "chat template"));
  }
  if (!options.quiet) std::fputs((banner(engine->info()) + "\n").c_str(), stderr);
  Chat chat(*engine, options);
  if (!options.load.empty()) print(chat.session().command("/load " + options.load).text);
  if (is_terminal(stdin) && !options.quiet)
    std::fputs("qwench: /help lists the commands, Ctrl-D ends\n", stderr);
  // At a terminal, Ctrl-C is the line editor's while it reads, and between an answer and the next line there
  // is nothing that it could stop. Nobody types into a pipe: there it ends the program.
  ::signal(SIGINT, is_terminal(stdin) ? SIG_IGN : leave);
  return chat.run();
}

}  // namespace qwench::cli
