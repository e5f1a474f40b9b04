#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qwench::cli {

/// The command line itself is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Arguments = std::vector<std::string>;

/// One command of the program. `run` gets what follows the command's name and returns the exit code; it
/// throws UsageError, or Error for everything else.
struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments& arguments);
};

std::span<const Command> commands();

int run_command(const Arguments& arguments);
int chat_command(const Arguments& arguments);
int tokenize_command(const Arguments& arguments);
int template_command(const Arguments& arguments);
int score_command(const Arguments& arguments);
int bench_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);

/// The parser of one command: `examples` are whole command lines, one a line, shown at the end of its help.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& examples);

  CLI::App& app() { return app_; }
  /// False when help was asked for, and has been printed. Throws UsageError.
  bool parse(const Arguments& arguments);

 private:
  std::string name_;
  CLI::App app_;
};

/// For options of whole numbers: decimal digits, a minus sign where `negative`. CLI11 alone takes 010 for 8,
/// and -1 for the largest unsigned number.
CLI::Validator whole_number(bool negative = false);

/// The whole program: picks the command, turns exceptions into one line on stderr and an exit code: 0, 1 for
/// an error, 2 for a wrong command line, 130 when stopped by Ctrl-C.
int run_program(const Arguments& arguments);

}  // namespace qwench::cli
