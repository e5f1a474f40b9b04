#include "cli/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstring>
#include <iostream>
#include <string_view>

#include "cli/terminal.h"
#include "core/utf8.h"

namespace qwench::cli {
namespace {

constexpr int kHistoryLines = 1000;

// Signals reach the reading loop through a pipe, so that none falls between a check and a read.
int signal_pipe[2] = {-1, -1};

void on_signal(int number) {
  const int saved = errno;
  const char byte = number == SIGINT ? 'i' : number == SIGWINCH ? 'w' : 'c';
  [[maybe_unused]] const ssize_t written = ::write(signal_pipe[1], &byte, 1);
  errno = saved;
}

class SignalScope {
 public:
  SignalScope() {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESTART);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &action, &previous_[i]);
  }
  ~SignalScope() {
    for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &previous_[i], nullptr);
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  static constexpr int kSignals[3] = {SIGINT, SIGWINCH, SIGCONT};
  struct sigaction previous_[3] = {};
};

/// libedit turns bytes into characters by the locale, which is often "C" in containers.
void use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

class LineEditor::Terminal {
 public:
  Terminal() {
    use_utf8_locale();
    if (::pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) signal_pipe[0] = signal_pipe[1] = -1;
    FILE* screen = is_terminal(stdout) ? stdout : stderr;
    editor_ = el_init("qwench", stdin, screen, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, &Terminal::prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, &Terminal::get_character);
  }

  ~Terminal() {
    history_end(history_);
    el_end(editor_);
    for (int& end : signal_pipe) {
      if (end >= 0) ::close(end);
      end = -1;
    }
  }

  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  Outcome read(const std::string& prompt, std::string& line) {
    const SignalScope signals;
    prompt_ = prompt;
    interrupted_ = false;
    int count = 0;
    const char* text = el_gets(editor_, &count);
    if (text == nullptr || count <= 0) {
      el_reset(editor_);
      print("\n");
      return interrupted_ ? Outcome::interrupted : Outcome::end;
    }
    line.assign(text);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return Outcome::line;
  }

  void remember(const std::string& line) {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
  }

 private:
  static Terminal& of(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<Terminal*>(data);
  }

  static char* prompt(EditLine* editor) { return of(editor).prompt_.data(); }

  static int get_character(EditLine* editor, wchar_t* out) { return of(editor).next(*out); }

  /// 1 with a character, 0 at the end of input, -1 when interrupted.
  int next(wchar_t& out) {
    std::string bytes;
    do {
      char byte = 0;
      const int got = next_byte(byte);
      if (got <= 0) return got;
      bytes.push_back(byte);
    } while (incomplete_utf8_suffix(bytes) > 0);
    out = static_cast<wchar_t>(decode_utf8(bytes).code);
    return 1;
  }

  int next_byte(char& byte) {
    while (true) {
      pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {signal_pipe[0], POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0 && errno != EINTR) return -1;
      char signal = 0;
      while (::read(signal_pipe[0], &signal, 1) == 1) {
        if (signal == 'i') {
          interrupted_ = true;
          return -1;
        }
        if (signal == 'w') el_resize(editor_);
        if (signal == 'c') {
          el_set(editor_, EL_PREP_TERM, 1);
          el_set(editor_, EL_REFRESH);
        }
      }
      if ((watched[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got >= 0) return static_cast<int>(got);
      if (errno != EINTR && errno != EAGAIN) return -1;
    }
  }

  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  bool interrupted_ = false;
};

LineEditor::LineEditor() {
  if (is_terminal(stdin)) terminal_ = std::make_unique<Terminal>();
}

LineEditor::~LineEditor() = default;

LineEditor::Outcome LineEditor::read(const std::string& prompt, std::string& line) {
  if (terminal_) return terminal_->read(prompt, line);
  return std::getline(std::cin, line) ? Outcome::line : Outcome::end;
}

void LineEditor::remember(const std::string& line) {
  if (terminal_ && !line.empty()) terminal_->remember(line);
}

}  // namespace qwench::cli
