#include "cli/text_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "core/log.h"
#include "core/mapped_file.h"
#include "core/utf8.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

constexpr size_t kLargestText = size_t{1} << 30;

std::string read_stdin() {
  if (is_terminal(stdin)) std::fputs("qwench: reading from the terminal; Ctrl-D ends the text\n", stderr);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

/// A regular file, or what cannot be mapped: a named pipe, or the <(command) of a shell.
std::string read_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::is_fifo(status) && !std::filesystem::is_character_file(status))
    return read_text_file(path, kLargestText);
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> part{};
  while (in.read(part.data(), part.size()) || in.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kLargestText)
      throw Error(ErrorKind::malformed,
                  fmt::format("{}: more than the {} bytes that a text may have", path, kLargestText));
  }
  return text;
}

}  // namespace

std::string well_formed(const std::string& text) {
  if (is_valid_utf8(text)) return text;
  log_warning("the text has bytes that are not UTF-8; U+FFFD stands for them");
  return to_valid_utf8(text);
}

void TextSource::add_to(CommandLine& line, const std::string& positional, const std::string& what) {
  line.takes_text();
  positional_option_ =
      line.add_option(positional, positional_text_, what + "; read from standard input when absent")
          .value_name("");
  flag_option_ = line.add_option("-p,--prompt", flag_text_, "the same, by flag").value_name(positional);
  line.add_option("-f,--file", file_, "the same, from a file; - is standard input").value_name("FILE");
}

void TextSource::finish() {
  if (positional_option_ && positional_option_->given()) positional_ = positional_text_;
  if (flag_option_ && flag_option_->given()) flag_ = flag_text_;
}

std::string TextSource::read(bool drop_last_newline) const {
  if (positional_.has_value() + flag_.has_value() + !file_.empty() > 1) {
    throw UsageError("the text is given more than once; give it as an argument, by -p or by -f");
  }
  if (positional_) return well_formed(*positional_);
  if (flag_) return well_formed(*flag_);
  std::string text = file_.empty() || file_ == "-" ? read_stdin() : read_file(file_);
  if (drop_last_newline && text.ends_with('\n')) text.pop_back();
  if (drop_last_newline && text.ends_with('\r')) text.pop_back();
  return well_formed(text);
}

std::string TextSource::read_some(bool drop_last_newline) const {
  std::string text = read(drop_last_newline);
  if (!text.empty()) return text;
  const bool piped = !positional_ && !flag_ && (file_.empty() || file_ == "-");
  const std::string where = piped ? "standard input" : file_.empty() ? "the argument" : file_;
  throw UsageError(
      fmt::format("there is no text: {} is empty; give it as an argument, by -p, by -f or by a pipe", where));
}

std::string read_text_argument(const std::string& file) {
  return to_valid_utf8(file == "-" ? read_stdin() : read_text_file(file, kLargestText));
}

std::vector<TokenId> parse_ids(const std::string& text) {
  std::vector<TokenId> ids;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n,[]", at)) != std::string::npos) {
    const size_t end = std::min(text.find_first_of(" \t\r\n,[]", at), text.size());
    TokenId id = -1;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc{} || rest != text.data() + end || id < 0) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("\"{}\" is not a token id, a whole number from 0",
                              printable(text.substr(at, std::min<size_t>(end - at, 40)))));
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

}  // namespace qwench::cli
