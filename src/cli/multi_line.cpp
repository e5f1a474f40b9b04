#include "cli/multi_line.h"

#include <string_view>
#include <utility>

namespace qwench::cli {
namespace {
constexpr std::string_view kQuotes = "\"\"\"";
}

bool MultiLine::add(std::string line, bool goes_on) {
  const bool first = !std::exchange(started_, true);
  if (first && line.starts_with(kQuotes)) {
    quoted_ = true;
    line.erase(0, kQuotes.size());
    if (line.empty()) return false;
  }
  if (quoted_) {
    const bool closed = line.ends_with(kQuotes);
    if (closed) line.resize(line.size() - kQuotes.size());
    // Closing quotes on a line of their own end the last line; they do not begin another.
    if (closed && line.empty() && text_.ends_with('\n')) {
      text_.pop_back();
    } else {
      text_ += line;
    }
    if (!closed) text_ += '\n';
    return closed;
  }
  if (goes_on) {
    line += '\n';
  } else if (line.ends_with('\\')) {
    line.back() = '\n';
    goes_on = true;
  }
  text_ += line;
  return !goes_on;
}

std::string MultiLine::take() {
  started_ = quoted_ = false;
  return std::exchange(text_, {});
}

}  // namespace qwench::cli
