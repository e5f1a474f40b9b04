#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include "core/utf8.h"

namespace qwench::cli {
namespace {

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

}  // namespace

bool is_terminal(FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

bool takes_escapes(FILE* stream) {
  const char* term = std::getenv("TERM");
  return is_terminal(stream) && (term == nullptr || std::string_view(term) != "dumb");
}

bool shows_colours(FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return takes_escapes(stream) && (no_colour == nullptr || *no_colour == '\0');
}

std::string styled(std::string_view text, std::string_view style, bool on) {
  return on ? fmt::format("{}{}{}", style, text, kReset) : std::string(text);
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(c.length));
    if (c.valid && c.code == '\n') {
      out += "\\n";
    } else if (c.valid && c.code == '\t') {
      out += "\\t";
    } else if (c.valid && !is_control(c.code)) {
      out += bytes;
    } else {
      for (const char byte : bytes) out += fmt::format("\\x{:02X}", static_cast<uint8_t>(byte));
    }
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string harmless(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (c.code == '\n' || c.code == '\t' || !is_control(c.code)) {
      append_utf8(out, c.code);
    } else {
      append_utf8(out, c.code < 0x20 ? 0x2400 + c.code : c.code == 0x7F ? U'\u2421' : kReplacementCharacter);
    }
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return out;
}

void print_error(std::string_view message) {
  std::fflush(stdout);
  const std::string line = fmt::format("qwench: {}\n", printable(message));
  std::fputs(line.c_str(), stderr);
}

bool agrees(std::string_view question) {
  std::fputs(fmt::format("{} [y/N] ", printable(question)).c_str(), stderr);
  std::fflush(stderr);
  std::array<char, 64> answer{};
  return std::fgets(answer.data(), static_cast<int>(answer.size()), stdin) != nullptr &&
         (answer[0] == 'y' || answer[0] == 'Y');
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressLine::ProgressLine() : enabled_(takes_escapes(stderr)), start_(steady_seconds()) {}

void ProgressLine::update(std::string_view what, double share) {
  if (!enabled_ || steady_seconds() - start_ < 1.0) return;
  const int percent = static_cast<int>(100 * share);
  if (percent == percent_) return;
  percent_ = percent;
  shown_ = true;
  std::fputs(fmt::format("\r{} {} %\x1b[K", what, percent).c_str(), stderr);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void StatusLine::update(std::string_view text) {
  if (!enabled_) return;
  shown_ = true;
  std::fputs(fmt::format("\r{}\x1b[K", text).c_str(), stderr);
  std::fflush(stderr);
}

void StatusLine::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

std::string progress_bar(double share) {
  constexpr int kWidth = 24;
  const double part = std::clamp(share, 0.0, 1.0);
  const auto filled = static_cast<size_t>(part * kWidth);
  std::string bar(filled, '=');
  if (filled < kWidth) bar += '>';
  bar.resize(kWidth, ' ');
  return fmt::format("[{}] {:>3} %", bar, static_cast<int>(100 * part));
}

}  // namespace qwench::cli
