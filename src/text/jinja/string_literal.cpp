#include "text/jinja/string_literal.h"

#include <fmt/format.h>

#include "core/ascii.h"
#include "core/utf8.h"
#include "text/jinja/error.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

[[noreturn]] void bad_escape(std::string message) { fail(TemplateErrorKind::syntax, std::move(message)); }

class Unescaper {
 public:
  explicit Unescaper(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (text_[at_] != '\\' || at_ + 1 == text_.size()) {
        emit(static_cast<unsigned char>(text_[at_++]));
      } else {
        ++at_;
        escape(text_[at_++]);
      }
    }
    flush();
    return std::move(out_);
  }

 private:
  void escape(char c) {
    switch (c) {
      case '\n':
        return;
      case '\\':
      case '\'':
      case '"':
        return emit(static_cast<unsigned char>(c));
      case 'a':
        return emit(7);
      case 'b':
        return emit(8);
      case 'f':
        return emit(12);
      case 'n':
        return emit(10);
      case 'r':
        return emit(13);
      case 't':
        return emit(9);
      case 'v':
        return emit(11);
      case 'x':
        return emit(hex(2, "truncated \\xXX escape"));
      case 'u':
        return emit(hex(4, "truncated \\uXXXX escape"));
      case 'U':
        return emit(hex(8, "truncated \\UXXXXXXXX escape"));
      case 'N':
        return named();
      default:
        break;
    }
    if (c < '0' || c > '7') {
      emit('\\');
      return emit(static_cast<unsigned char>(c));
    }
    char32_t code = static_cast<char32_t>(c - '0');
    for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i) {
      code = code * 8 + static_cast<char32_t>(text_[at_++] - '0');
    }
    emit(code);
  }

  char32_t hex(int digits, const char* error) {
    uint32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = at_ < text_.size() ? hex_digit(text_[at_]) : -1;
      if (digit < 0) bad_escape(error);
      code = code << 4 | static_cast<uint32_t>(digit);
      ++at_;
    }
    if (code > 0x10FFFF) bad_escape("illegal Unicode character");
    return code;
  }

  void named() {
    const size_t close = text_.find('}', at_);
    if (at_ >= text_.size() || text_[at_] != '{' || close == std::string_view::npos || close == at_ + 1) {
      bad_escape("malformed \\N character escape");
    }
    const std::string_view name = text_.substr(at_ + 1, close - at_ - 1);
    const auto code = character_by_name(name);
    if (!code)
      bad_escape(fmt::format("unknown Unicode character name '{}' in \\N{{...}}: write it as \\uXXXX", name));
    at_ = close + 1;
    emit(*code);
  }

  // Two escapes that are the halves of a surrogate pair make one character, as they do once Python's text is
  // written as UTF-16 or JSON; a lone half has no UTF-8.
  void emit(char32_t code) {
    if (high_ != 0 && code >= 0xDC00 && code < 0xE000) {
      append_utf8(out_, 0x10000 + ((high_ - 0xD800) << 10) + (code - 0xDC00));
      high_ = 0;
      return;
    }
    flush();
    if (code >= 0xD800 && code < 0xDC00) {
      high_ = code;
    } else {
      append_utf8(out_, code);
    }
  }

  void flush() {
    if (high_ != 0) append_utf8(out_, kReplacementCharacter);
    high_ = 0;
  }

  std::string_view text_;
  size_t at_ = 0;
  char32_t high_ = 0;
  std::string out_;
};

}  // namespace

std::string unescape(std::string_view literal) {
  if (literal.find('\\') == std::string_view::npos) return std::string(literal);
  if (is_ascii(literal)) return Unescaper(literal).run();
  std::string ascii;
  for (size_t at = 0; at < literal.size();) {
    const Utf8Char c = decode_utf8(literal.substr(at));
    at += static_cast<size_t>(c.length);
    if (c.code < 0x80) {
      ascii += static_cast<char>(c.code);
    } else if (c.code < 0x100) {
      ascii += fmt::format("\\x{:02x}", static_cast<uint32_t>(c.code));
    } else if (c.code < 0x10000) {
      ascii += fmt::format("\\u{:04x}", static_cast<uint32_t>(c.code));
    } else {
      ascii += fmt::format("\\U{:08x}", static_cast<uint32_t>(c.code));
    }
  }
  return Unescaper(ascii).run();
}

}  // namespace qwench::jinja
