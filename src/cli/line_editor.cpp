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
constexpr char32_t kControlD = 4;
constexpr int kFollows = 50;  // ms: the bytes of one key or character come together

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
    screen_ = is_terminal(stdout) ? stdout : stderr;
    editor_ = el_init("qwench", stdin, screen_, stderr);
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
    interrupted_ = paste_goes_on_ = false;
    typed_before_ = !ahead_.empty() || has_input();
    int count = 0;
    bracketed_paste(true);
    const char* text = el_gets(editor_, &count);
    bracketed_paste(false);
    if (text == nullptr || count <= 0) {
      el_reset(editor_);
      print("\n");
      return interrupted_ ? Outcome::interrupted : Outcome::end;
    }
    line.assign(text);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return Outcome::line;
  }

  bool paste_goes_on() const { return paste_goes_on_; }

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
    while (true) {
      if (ahead_.empty()) {
        const int got = read_more(-1);
        if (got <= 0) return got;
      }
      if (ahead_[0] == '\x1b' && (starts_with("\x1b[200~") || starts_with("\x1b[201~"))) {
        pasting_ = ahead_[4] == '0';
        ahead_.erase(0, 6);
        continue;
      }
      // The rest of a character follows at once, or never.
      while (incomplete_utf8_suffix(ahead_) == static_cast<int>(ahead_.size()) && read_more(kFollows) > 0) {
      }
      Utf8Char c = decode_utf8(ahead_);
      ahead_.erase(0, static_cast<size_t>(c.length));
      // Ctrl-D typed before the prompt, while the terminal was still in its line mode, arrives as NUL.
      if (c.code == 0 && typed_before_) c.code = kControlD;
      typed_before_ = false;
      out = static_cast<wchar_t>(c.code);
      if (!pasting_ || c.code >= 0x20) return 1;
      if (c.code == '\t') {
        out = L' ';
        return 1;
      }
      if (c.code == '\n' || c.code == '\r') {
        out = L'\n';
        paste_goes_on_ = true;
        return 1;
      }
      // Other control characters of a paste are no commands to the editor.
    }
  }

  /// Reads ahead as far as it takes to tell.
  bool starts_with(std::string_view sequence) {
    while (ahead_.size() < sequence.size() && sequence.starts_with(ahead_)) {
      if (read_more(kFollows) <= 0) return false;
    }
    return std::string_view(ahead_).starts_with(sequence);
  }

  /// Appends what there is to ahead_: 1, 0 at the end of input, -1 when interrupted or nothing came within
  /// `milliseconds` (-1: without end).
  int read_more(int milliseconds) {
    while (true) {
      pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {signal_pipe[0], POLLIN, 0}};
      const int ready = ::poll(watched, 2, milliseconds);
      if (ready == 0 || (ready < 0 && errno != EINTR)) return -1;
      if (ready > 0 && (watched[1].revents & POLLIN) != 0 && !obey_signals()) return -1;
      if (ready < 0 || (watched[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      char bytes[4096];
      const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof(bytes));
      if (got > 0) ahead_.append(bytes, static_cast<size_t>(got));
      if (got >= 0) return got > 0 ? 1 : 0;
      if (errno != EINTR && errno != EAGAIN) return -1;
    }
  }

  static bool has_input() {
    pollfd watched = {STDIN_FILENO, POLLIN, 0};
    return ::poll(&watched, 1, 0) > 0;
  }

  /// False when Ctrl-C was among them.
  bool obey_signals() {
    char signal = 0;
    while (::read(signal_pipe[0], &signal, 1) == 1) {
      if (signal == 'i') {
        interrupted_ = true;
        pasting_ = false;
        ahead_.clear();
        return false;
      }
      if (signal == 'w') el_resize(editor_);
      if (signal == 'c') {
        el_set(editor_, EL_PREP_TERM, 1);
        el_set(editor_, EL_REFRESH);
      }
    }
    return true;
  }

  /// Asks the terminal to put ESC [200~ and ESC [201~ around what is pasted, so that its newlines do not
  /// submit it.
  void bracketed_paste(bool on) {
    if (!takes_escapes(screen_)) return;
    std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", screen_);
    std::fflush(screen_);
  }

  FILE* screen_ = nullptr;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  std::string ahead_;  // bytes read and not yet given out
  bool interrupted_ = false;
  bool typed_before_ = false;  // the next character was there before the prompt
  bool pasting_ = false;
  bool paste_goes_on_ = false;
};

LineEditor::LineEditor() {
  if (is_terminal(stdin)) terminal_ = std::make_unique<Terminal>();
}

LineEditor::~LineEditor() = default;

LineEditor::Outcome LineEditor::read(const std::string& prompt, std::string& line) {
  if (terminal_) return terminal_->read(prompt, line);
  return std::getline(std::cin, line) ? Outcome::line : Outcome::end;
}

bool LineEditor::paste_goes_on() const { return terminal_ && terminal_->paste_goes_on(); }

void LineEditor::remember(const std::string& line) {
  if (terminal_ && !line.empty()) terminal_->remember(line);
}

}  // namespace qwench::cli
