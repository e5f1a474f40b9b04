#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/utf8.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(source), name_(name) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(TokenKind::end, "", source_.size());
    return std::move(tokens_);
  }

 private:
  // --- Template text, up to the next tag

  void root() {
    size_t tag = source_.find('{', at_);
    while (tag != kNone && (tag + 1 >= source_.size() || kTagMarks.find(source_[tag + 1]) == kNone)) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == kNone) {
      data(at_, source_.size());
      at_ = source_.size();
      return;
    }
    const char mark = source_[tag + 1];
    const size_t begin = at_;
    char sign = '\0';
    size_t inside = tag + 2;
    if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
      sign = source_[inside++];
    data(begin, text_end(begin, tag, sign, mark == '{'));
    if (mark == '#') {
      comment(tag, inside);
    } else if (mark == '{') {
      at_ = inside;
      add(TokenKind::variable_begin, "", tag);
      expression(TokenKind::variable_end);
    } else if (const size_t raw = raw_begin(inside); raw != kNone) {
      raw_text(tag, raw);
    } else {
      at_ = inside;
      add(TokenKind::block_begin, "", tag);
      expression(TokenKind::block_end);
    }
  }

  /// Where the text [begin, tag) ends once white space control is done.
  size_t text_end(size_t begin, size_t tag, char sign, bool variable) const {
    if (sign == '-') return strip_right(begin, tag);
    if (sign == '+' || variable) return tag;
    const size_t newline = source_.substr(begin, tag - begin).rfind('\n');
    if (newline == kNone && begin != 0 && source_[begin - 1] != '\n') return tag;
    const size_t line = newline == kNone ? begin : begin + newline + 1;
    return strip_right(line, tag) == line ? line : tag;
  }

  size_t strip_right(size_t begin, size_t end) const {
    while (end > begin) {
      size_t start = end - 1;
      while (start > begin && (static_cast<unsigned char>(source_[start]) & 0xC0) == 0x80) --start;
      if (!is_space(decode_utf8(source_.substr(start)).code)) break;
      end = start;
    }
    return end;
  }

  size_t skip_space(size_t at) const {
    while (at < source_.size()) {
      const Utf8Char c = decode_utf8(source_.substr(at));
      if (!is_space(c.code)) break;
      at += static_cast<size_t>(c.length);
    }
    return at;
  }

  bool looking_at(size_t at, std::string_view text) const {
    return source_.substr(std::min(at, source_.size()), text.size()) == text;
  }

  /// After "%}", "-%}" or "+%}" (or the same with another end mark) at `at`; kNone when it is not there.
  size_t tag_end(size_t at, std::string_view mark, bool trim_newline, bool plus) const {
    if (looking_at(at, mark)) {
      at += mark.size();
      return trim_newline && looking_at(at, "\n") ? at + 1 : at;
    }
    if (!looking_at(at + 1, mark)) return kNone;
    if (source_[at] == '-') return skip_space(at + 1 + mark.size());
    return plus && source_[at] == '+' ? at + 1 + mark.size() : kNone;
  }

  void comment(size_t tag, size_t inside) {
    for (size_t at = inside; at < source_.size(); ++at) {
      const size_t end = tag_end(at, "#}", true, true);
      if (end != kNone) {
        at_ = end;
        return;
      }
    }
    at_ = source_.size();
    if (inside < source_.size()) error("Missing end of comment tag", tag);
  }

  /// After the end of a "raw" tag whose inside begins at `at`, or kNone.
  size_t raw_begin(size_t at) const {
    at = skip_space(at);
    if (!looking_at(at, "raw")) return kNone;
    return tag_end(skip_space(at + 3), "%}", false, false);
  }

  void raw_text(size_t tag, size_t begin) {
    for (size_t at = source_.find("{%", begin); at != kNone; at = source_.find("{%", at + 1)) {
      size_t inside = at + 2;
      char sign = '\0';
      if (looking_at(inside, "-") || looking_at(inside, "+")) sign = source_[inside++];
      inside = skip_space(inside);
      if (!looking_at(inside, "endraw")) continue;
      const size_t end = tag_end(skip_space(inside + 6), "%}", true, true);
      if (end == kNone) continue;
      data(begin, text_end(begin, at, sign, false));
      at_ = end;
      return;
    }
    at_ = source_.size();
    if (begin < source_.size()) error("Missing end of raw directive", tag);
  }

  void data(size_t begin, size_t end) {
    if (begin < end) add(TokenKind::data, std::string(source_.substr(begin, end - begin)), begin);
  }

  // --- Inside {{ }} and {% %}

  void expression(TokenKind end_kind) {
    std::string open;  // the closing brackets that are due
    while (at_ < source_.size()) {
      if (open.empty()) {
        const bool block = end_kind == TokenKind::block_end;
        const size_t end = tag_end(at_, block ? "%}" : "}}", block, block);
        if (end != kNone) {
          add(end_kind, "", at_);
          at_ = end;
          return;
        }
      }
      const size_t after_space = skip_space(at_);
      if (after_space != at_) {
        at_ = after_space;
      } else if (!number() && !name() && !string() && !op(open)) {
        error(fmt::format("unexpected char '{}'",
                          source_.substr(at_, static_cast<size_t>(decode_utf8(source_.substr(at_)).length))),
              at_);
      }
    }
  }

  /// The end of digits with single underscores between them, or `at` when there are none.
  template <typename IsDigit>
  size_t digits(size_t at, IsDigit is_digit_here) const {
    const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit_here(source_[i]); };
    if (!digit_at(at)) return at;
    while (digit_at(at) || (at < source_.size() && source_[at] == '_' && digit_at(at + 1))) ++at;
    return at;
  }

  size_t exponent(size_t at) const {
    if (!looking_at(at, "e") && !looking_at(at, "E")) return at;
    const size_t sign = looking_at(at + 1, "+") || looking_at(at + 1, "-") ? at + 2 : at + 1;
    const size_t end = digits(sign, is_ascii_digit);
    return end == sign ? at : end;
  }

  bool number() {
    if (!is_ascii_digit(source_[at_])) return false;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      const size_t whole = digits(at_, is_ascii_digit);
      const size_t fraction = looking_at(whole, ".") ? digits(whole + 1, is_ascii_digit) : whole + 1;
      const size_t fraction_end = fraction > whole + 1 ? fraction : whole;
      size_t end = exponent(fraction_end);
      if (end == fraction_end && fraction_end != whole && exponent(whole) != whole) end = exponent(whole);
      if (end != whole) return literal(TokenKind::real, end);
    }
    const char second = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    if (source_[at_] == '0') {
      const auto prefixed = [&](auto is_digit_here) {
        const size_t start = looking_at(at_ + 2, "_") ? at_ + 3 : at_ + 2;
        const size_t end = digits(start, is_digit_here);
        return end == start ? kNone : end;
      };
      size_t end = kNone;
      if (second == 'b' || second == 'B') end = prefixed([](char c) { return c == '0' || c == '1'; });
      if (second == 'o' || second == 'O') end = prefixed([](char c) { return c >= '0' && c <= '7'; });
      if (second == 'x' || second == 'X') {
        end = prefixed(
            [](char c) { return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); });
      }
      if (end == kNone) end = digits(at_, [](char c) { return c == '0'; });
      return literal(TokenKind::integer, end);
    }
    return literal(TokenKind::integer, digits(at_, is_ascii_digit));
  }

  bool literal(TokenKind kind, size_t end) {
    std::string text(source_.substr(at_, end - at_));
    std::erase(text, '_');
    add(kind, std::move(text), at_);
    at_ = end;
    return true;
  }

  bool name() {
    size_t end = at_;
    bool identifier = true;
    while (end < source_.size()) {
      const Utf8Char c = decode_utf8(source_.substr(end));
      const bool part = is_identifier_part(c.code);
      if (!part && !is_alnum(c.code)) break;
      identifier = identifier && part && (end != at_ || is_identifier_start(c.code));
      end += static_cast<size_t>(c.length);
    }
    if (end == at_) return false;
    if (!identifier) error("Invalid character in identifier", at_);
    add(TokenKind::name, std::string(source_.substr(at_, end - at_)), at_);
    at_ = end;
    return true;
  }

  bool string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return false;
    try {
      add(TokenKind::string, unescape(source_.substr(at_ + 1, end - at_ - 1)), at_);
    } catch (const Failure& failure) {
      error(failure.message, at_);
    }
    at_ = end + 1;
    return true;
  }

  bool op(std::string& open) {
    constexpr std::string_view doubles[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view singles = "+-/*%~[](){}><=.:|,;";
    const auto found = std::find_if(std::begin(doubles), std::end(doubles),
                                    [&](std::string_view d) { return looking_at(at_, d); });
    if (found != std::end(doubles)) {
      add(TokenKind::op, std::string(*found), at_);
      at_ += 2;
      return true;
    }
    const char c = source_[at_];
    if (singles.find(c) == kNone) return false;
    if (c == '{') open += '}';
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '}' || c == ')' || c == ']') {
      if (open.empty()) error(fmt::format("unexpected '{}'", c), at_);
      if (open.back() != c) error(fmt::format("unexpected '{}', expected '{}'", c, open.back()), at_);
      open.pop_back();
    }
    add(TokenKind::op, std::string(1, c), at_);
    ++at_;
    return true;
  }

  // --- Positions

  void add(TokenKind kind, std::string text, size_t at) {
    tokens_.push_back({kind, std::move(text), position(at)});
  }

  [[noreturn]] void error(const std::string& message, size_t at) {
    if (at < counted_) {
      counted_ = 0;
      here_ = {};
    }
    const Position where = position(at);
    throw TemplateError(TemplateErrorKind::syntax, name_, message, where.line, where.column);
  }

  /// Of rising offsets; each byte is looked at once.
  Position position(size_t at) {
    for (; counted_ < at; ++counted_) {
      if (source_[counted_] == '\n') {
        ++here_.line;
        here_.column = 1;
      } else if ((static_cast<unsigned char>(source_[counted_]) & 0xC0) != 0x80) {
        ++here_.column;
      }
    }
    return here_;
  }

  static constexpr std::string_view kTagMarks = "{%#";

  std::string_view source_;
  const std::string& name_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
  size_t counted_ = 0;
  Position here_;
};

/// CRLF and CR become LF, and one newline at the end is dropped.
std::string normalize_newlines(const std::string& source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::vector<Token> tokenize(const std::string& source, const std::string& name) {
  const std::string text = normalize_newlines(source);
  return Lexer(text, name).run();
}

}  // namespace qwench::jinja
