#pragma once

#include <memory>
#include <string>

namespace qwench::cli {

/// Reads lines: with editing, history and UTF-8 on a terminal (libedit), plainly from a pipe or file.
class LineEditor {
 public:
  enum class Outcome { line, end, interrupted };

  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// The next line, without its newline. `interrupted`: Ctrl-C was pressed and what was typed is dropped.
  Outcome read(const std::string& prompt, std::string& line);
  /// The line just read was ended by a newline inside of pasted text: more of the paste follows.
  bool paste_goes_on() const;
  void remember(const std::string& line);  ///< for the arrow keys
  bool interactive() const { return terminal_ != nullptr; }

 private:
  class Terminal;
  std::unique_ptr<Terminal> terminal_;  // null where stdin is none
};

}  // namespace qwench::cli
