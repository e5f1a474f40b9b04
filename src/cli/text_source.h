#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "qwench/sampling.h"

namespace qwench::cli {

/// Where a command's text comes from: a positional, -p, -f FILE, or else standard input.
class TextSource {
 public:
  void add_to(CommandLine& line, const std::string& positional, const std::string& what);
  /// The positional's text when the command line has it, maybe empty.
  const std::optional<std::string>& positional() const { return positional_; }
  void set_positional(std::string text) { positional_ = std::move(text); }
  /// To be called once after parsing.
  void finish();
  bool given() const { return positional_ || flag_ || !file_.empty(); }

  /// The text: at most one source may be given. Text is taken as it is: no escapes, and the newline that ends
  /// a file or a pipe is dropped when `drop_last_newline`. Bytes that are not UTF-8 become U+FFFD, with a
  /// warning. Throws UsageError, Error.
  std::string read(bool drop_last_newline) const;
  /// The same, for commands to which an empty text says nothing. Throws UsageError where it is empty.
  std::string read_some(bool drop_last_newline) const;

 private:
  // An absent text and an empty one have the same value.
  std::optional<Option> positional_option_;
  std::optional<Option> flag_option_;
  std::string positional_text_;
  std::string flag_text_;
  std::optional<std::string> positional_;
  std::optional<std::string> flag_;
  std::string file_;
};

/// The text, with U+FFFD for bytes that are not UTF-8, and a warning where there are some.
std::string well_formed(const std::string& text);

/// The text of a FILE argument; "-" is standard input. Throws Error.
std::string read_text_argument(const std::string& file);

/// Token ids parted by spaces, commas or brackets. Throws Error (invalid_argument).
std::vector<TokenId> parse_ids(const std::string& text);

}  // namespace qwench::cli
