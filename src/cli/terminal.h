#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace qwench::cli {

bool is_terminal(FILE* stream);
/// A terminal that understands escape sequences: TERM is not "dumb".
bool takes_escapes(FILE* stream);
/// A terminal that understands colours, and NO_COLOR (https://no-color.org) is not set.
bool shows_colours(FILE* stream);

inline constexpr std::string_view kDim = "\x1b[2m";
inline constexpr std::string_view kBold = "\x1b[1m";
inline constexpr std::string_view kReset = "\x1b[0m";

/// `text` in a style where `on`, else as it is.
std::string styled(std::string_view text, std::string_view style, bool on);

/// Fit for one line of a terminal: control characters as \n, \t or \xNN, ill-formed UTF-8 as \xNN.
std::string printable(std::string_view text);
/// A model's text made harmless for a terminal: control characters but newline and tab become their pictures
/// (U+2400).
std::string harmless(std::string_view text);

/// "qwench: ..." on stderr, in one line.
void print_error(std::string_view message);

/// Asks on stderr and reads the answer from stdin: true for y or Y.
bool agrees(std::string_view question);

/// Writes to stdout and flushes it.
void print(std::string_view text);

/// Seconds on a clock that only goes forward.
double steady_seconds();

/// A line on stderr that is written over by the next and cleared at the end: "loading 42 %". Shown after the
/// first second, on a terminal that takes escape sequences only.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::string_view what, double share);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
  int percent_ = -1;
  double start_;
};

/// A line of any text on stderr that is written over by the next and cleared at the end; on a terminal only.
class StatusLine {
 public:
  StatusLine() : enabled_(is_terminal(stderr)) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void update(std::string_view text);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
};

/// "[=====>    ]  52 %" for a share from 0 to 1.
std::string progress_bar(double share);

}  // namespace qwench::cli
