#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "hub/http.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "answer one prompt, or a file of them in one batch", run_command},
    {"chat", "talk with a model", chat_command},
    {"tokenize", "show the tokens of a text, or the text of token ids", tokenize_command},
    {"template", "render messages through a chat template", template_command},
    {"score", "log-probabilities of given tokens", score_command},
    {"bench", "measure prefill and decode speed", bench_command},
    {"inspect", "check a model's files", inspect_command},
    {"pull", "fetch a model from a hub", pull_command},
    {"models", "list or delete the models that were fetched", models_command},
};

std::string program_help() {
  std::string help =
      "qwench: runs language models of the Qwen family\n\nUsage: qwench COMMAND [OPTIONS]\n\nCommands:\n";
  for (const Command& command : kCommands)
    help += fmt::format("  {:<10} {}\n", command.name, command.summary);
  help +=
      "\n  qwench COMMAND --help    the options of a command, with examples\n"
      "  qwench --version         the version\n"
      "\nExamples:\n"
      "  qwench run ~/models/Qwen3-0.6B \"Why is the sky blue?\"\n"
      "  qwench chat model.gguf\n"
      "  qwench tokenize ~/models/Qwen3-0.6B \"Hello, world\"\n";
  return help;
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    std::fputs(program_help().c_str(), stderr);
    return 2;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(program_help().c_str(), stdout);
    return 0;
  }
  if (name == "--version" || name == "-V") {
    std::fputs("qwench " QWENCH_VERSION "\n", stdout);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(Arguments(arguments.begin() + 1, arguments.end()));
  }
  throw UsageError(fmt::format("there is no {} '{}'; qwench --help lists the commands",
                               name.starts_with('-') ? "option" : "command", name));
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
