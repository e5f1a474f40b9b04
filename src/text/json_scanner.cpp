#include "text/json_scanner.h"

#include <fmt/format.h>

namespace qwench {
namespace {

constexpr size_t kDeepest = 200;
constexpr size_t kLongestScalar = 4096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Whether `text` is a number, or with `prefix` the beginning of one.
bool is_number(std::string_view text, bool prefix) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > begin;
  };
  const auto ends = [&] { return at == text.size(); };
  if (text.starts_with('-')) ++at;
  if (ends()) return prefix;
  if (text[at] == '0') {
    ++at;
  } else if (!digits()) {
    return false;
  }
  if (!ends() && text[at] == '.') {
    ++at;
    if (ends()) return prefix;
    if (!digits()) return false;
  }
  if (!ends() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (!ends() && (text[at] == '+' || text[at] == '-')) ++at;
    if (ends()) return prefix;
    if (!digits()) return false;
  }
  return ends();
}

bool is_scalar(std::string_view text, bool prefix) {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (prefix ? word.starts_with(text) : word == text) return true;
  }
  return is_number(text, prefix);
}

}  // namespace

bool JsonScanner::feed_string(char c) {
  if (hex_digits_ > 0) {
    --hex_digits_;
    return is_hex(c);
  }
  if (escaped_) {
    escaped_ = false;
    if (c == 'u') hex_digits_ = 4;
    return std::string_view("\"\\/bfnrtu").find(c) != std::string_view::npos;
  }
  if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
    if (key_) {
      expect_ = Expect::colon;
    } else {
      end_value();
    }
  }
  return true;
}

void JsonScanner::end_value() { expect_ = open_.empty() ? Expect::nothing : Expect::comma_or_end; }

bool JsonScanner::close(char bracket) {
  if (bracket != '}' && bracket != ']') return false;
  if (open_.empty() || open_.back() != (bracket == '}' ? '{' : '[')) return false;
  open_.pop_back();
  end_value();
  return true;
}

bool JsonScanner::begin_value(char c) {
  switch (c) {
    case '"':
      in_string_ = true;
      key_ = false;
      return true;
    case '{':
    case '[':
      if (open_.size() == kDeepest) return false;
      open_.push_back(c);
      expect_ = c == '{' ? Expect::key_or_end : Expect::value_or_end;
      return true;
    default:
      scalar_.assign(1, c);
      expect_ = Expect::scalar;
      return is_scalar(scalar_, true);
  }
}

bool JsonScanner::feed(char c) {
  if (in_string_) return feed_string(c);
  if (expect_ == Expect::scalar) {
    const bool delimiter = is_json_space(c) || c == ',' || c == '}' || c == ']';
    if (!delimiter) {
      scalar_ += c;
      return scalar_.size() <= kLongestScalar && is_scalar(scalar_, true);
    }
    if (!is_scalar(scalar_, false)) return false;
    end_value();
  }
  if (is_json_space(c)) return true;
  switch (expect_) {
    case Expect::value_or_end:
      if (c == ']') return close(c);
      return begin_value(c);
    case Expect::value:
      return begin_value(c);
    case Expect::key_or_end:
      if (c == '}') return close(c);
      [[fallthrough]];
    case Expect::key:
      in_string_ = key_ = c == '"';
      return in_string_;
    case Expect::colon:
      expect_ = Expect::value;
      return c == ':';
    case Expect::comma_or_end:
      if (c != ',') return close(c);
      expect_ = open_.back() == '{' ? Expect::key : Expect::value;
      return true;
    case Expect::scalar:
    case Expect::nothing:
      break;
  }
  return false;
}

std::string json_control_escape(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    default:
      return fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
}

void append_json_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += json_control_escape(c);
    } else {
      out += c;
    }
  }
}

}  // namespace qwench
