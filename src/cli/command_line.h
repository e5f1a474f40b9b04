#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

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
int serve_command(const Arguments& arguments);
int tokenize_command(const Arguments& arguments);
int template_command(const Arguments& arguments);
int score_command(const Arguments& arguments);
int embed_command(const Arguments& arguments);
int bench_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int devices_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);
int verify_command(const Arguments& arguments);
int trace_command(const Arguments& arguments);
int perplexity_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int quantize_command(const Arguments& arguments);
int pull_command(const Arguments& arguments);
int models_command(const Arguments& arguments);

/// One option or flag of a command. What is set returns the option, to set more.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& value_name(const std::string& name);  ///< what the help calls its value
  Option& group(const std::string& name);       ///< the heading of the help under which it stands
  Option& whole_number(bool negative = false);  ///< decimal digits, a minus sign where `negative`
  Option& separated_by(char separator);         ///< several values in one argument
  Option& value_optional();                     ///< without a value it is given all the same
  Option& repeatable();                         ///< given again, it adds
  Option& show_default();
  Option& required();
  bool given() const;  ///< after parsing: the command line has it

 private:
  CLI::Option* option_;
};

/// The parser of one command: `examples` are whole command lines, one a line, shown at the end of its help.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& examples);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// `names` as in "-n,--max-tokens", or a positional's name without dashes. `value` is written by parse(). T
  /// is std::string, int, or std::optional of int, float or uint64_t, or std::vector of std::string or int.
  template <typename T>
  Option add_option(const std::string& names, T& value, const std::string& help);
  /// A positional that takes all arguments that are left.
  Option add_rest(const std::string& name, std::vector<std::string>& values, const std::string& help);
  Option add_flag(const std::string& names, bool& value, const std::string& help);

  /// One of the positionals is a text, which people forget to put in quotes.
  void takes_text();

  /// False when help was asked for, and has been printed. Throws UsageError.
  bool parse(const Arguments& arguments);

 private:
  std::string name_;
  bool takes_text_ = false;
  std::unique_ptr<CLI::App> app_;
};

/// The whole program: picks the command, turns exceptions into one line on stderr and an exit code: 0, 1 for
/// an error, 2 for a wrong command line, 130 when stopped by Ctrl-C.
int run_program(const Arguments& arguments);

}  // namespace qwench::cli
