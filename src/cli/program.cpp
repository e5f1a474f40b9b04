#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/suggestion.h"
#include "cli/terminal.h"
#include "hub/http.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "answer one prompt, or a file of them in one batch", run_command},
    {"chat", "talk with a model", chat_command},
    {"serve", "answer over HTTP, by the APIs of OpenAI, Anthropic and Ollama", serve_command},
    {"tokenize", "show the tokens of a text, or the text of token ids", tokenize_command},
    {"template", "render messages through a chat template", template_command},
    {"score", "log-probabilities of given tokens", score_command},
    {"embed", "vectors of texts", embed_command},
    {"bench", "measure prefill and decode speed", bench_command},
    {"inspect", "show what a model's files hold, or check them", inspect_command},
    {"plan", "say what a model takes in memory, and whether it fits", plan_command},
    {"devices", "list what models can run on", devices_command},
    {"verify", "check what is computed, against a reference or itself", verify_command},
    {"trace", "what one pass computes and how long each step takes", trace_command},
    {"perplexity", "how well a model predicts a text", perplexity_command},
    {"compare", "how far two models' predictions lie apart", compare_command},
    {"quantize", "write a model as a GGUF file with fewer bits a weight", quantize_command},
    {"pull", "fetch a model from a hub", pull_command},
    {"models", "list or delete the models that were fetched", models_command},
};

std::string program_help() {
  std::string help =
      "qwench: runs language models of the Qwen family\n\nUsage: qwench COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : kCommands)
    help += fmt::format("  {:<10} {}\n", command.name, command.summary);
  help +=
      "\n  qwench help COMMAND      the options of a command, with examples\n"
      "  qwench --version         the version\n"
      "\nExamples:\n"
      "  qwench run ~/models/Qwen3-0.6B \"Why is the sky blue?\"\n"
      "  qwench chat model.gguf\n"
      "  qwench tokenize ~/models/Qwen3-0.6B \"Hello, world\"\n";
  return help;
}

const Command* find_command(const std::string& name) {
  const auto* found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                   [&](const Command& command) { return command.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

[[noreturn]] void fail_unknown(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : kCommands) known.emplace_back(command.name);
  known.emplace_back("help");
  const auto meant = name.starts_with('-') ? std::nullopt : suggestion(name, known);
  throw UsageError(fmt::format("there is no {} '{}'; {}qwench --help lists the commands",
                               name.starts_with('-') ? "option" : "command", name,
                               meant ? fmt::format("did you mean {}? ", *meant) : ""));
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    std::fputs(program_help().c_str(), stderr);
    return 2;
  }
  const std::string& name = arguments.front();
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (help && arguments.size() > 1) {
    if (const Command* command = find_command(arguments[1])) return command->run({"--help"});
    fail_unknown(arguments[1]);
  }
  if (help) {
    std::fputs(program_help().c_str(), stdout);
    return 0;
  }
  if (name == "--version" || name == "-V") {
    std::fputs("qwench " QWENCH_VERSION "\n", stdout);
    return 0;
  }
  const Command* command = find_command(name);
  if (command == nullptr) fail_unknown(name);
  return command->run(Arguments(arguments.begin() + 1, arguments.end()));
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run_program(const Arguments& arguments) {
  int code = 1;
  try {
    code = dispatch(arguments);
  } catch (const UsageError& error) {
    print_error(error.what());
    code = 2;
  } catch (const Error& error) {
    print_error(error.what());
    code = error.kind() == ErrorKind::invalid_argument ? 2 : 1;
  } catch (const hub::Stopped&) {
    print_error("stopped; what has been fetched is kept, and qwench pull goes on from there");
    code = kInterruptedExitCode;
  } catch (const std::bad_alloc&) {
    print_error("the memory there is does not suffice; try a shorter context (-c) or a smaller model");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (failed && code == 0) {
    print_error("standard output cannot be written to");
    code = 1;
  }
  return code;
}

}  // namespace qwench::cli
