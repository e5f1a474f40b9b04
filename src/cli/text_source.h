#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>

namespace qwench::cli {

/// Where a command's text comes from: a positional, -p, -f FILE, or else standard input.
class TextSource {
 public:
  void add_to(CLI::App& app, const std::string& positional, const std::string& what);
  /// The positional's text when the command line has it, maybe empty.
  const std::optional<std::string>& positional() const { return positional_; }
  void set_positional(std::string text) { positional_ = std::move(text); }
  /// To be called once after parsing.
  void finish();
  bool given() const { return positional_ || flag_ || !file_.empty(); }

  /// The text: at most one source may be given. Text is taken as it is: no escapes, and the newline that ends
  /// a file or a pipe is dropped when `drop_last_newline`. Throws UsageError, Error.
  std::string read(bool drop_last_newline) const;

 private:
  // CLI11 cannot tell an absent text from an empty one by its value.
  const CLI::Option* positional_option_ = nullptr;
  const CLI::Option* flag_option_ = nullptr;
  std::string positional_text_;
  std::string flag_text_;
  std::optional<std::string> positional_;
  std::optional<std::string> flag_;
  std::string file_;
};

}  // namespace qwench::cli
