#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qwench {

constexpr bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Reads one JSON value (RFC 8259) byte by byte and tells at each whether it still can become one. One thing
/// is allowed beyond: control characters in strings, which models write where a line breaks.
class JsonScanner {
 public:
  /// False when the text up to this byte begins no JSON value, or one nested more than 200 deep; it must not
  /// be fed on. A number, true, false or null at the top ends only with the byte behind it, whitespace.
  bool feed(char c);

  int depth() const { return static_cast<int>(open_.size()); }  ///< open objects and arrays
  bool in_string() const { return in_string_; }                 ///< also behind its first quote
  bool in_key() const { return in_string_ && key_; }
  bool in_scalar() const { return expect_ == Expect::scalar; }              ///< a number, true, false or null
  bool between_members() const { return expect_ == Expect::comma_or_end; }  ///< a value has just ended
  bool complete() const { return expect_ == Expect::nothing; }

 private:
  enum class Expect { value, value_or_end, key, key_or_end, colon, comma_or_end, scalar, nothing };

  bool feed_string(char c);
  bool begin_value(char c);
  void end_value();
  bool close(char bracket);

  Expect expect_ = Expect::value;
  std::vector<char> open_;  // '{' or '['
  bool in_string_ = false;
  bool key_ = false;
  bool escaped_ = false;  // behind a backslash
  int hex_digits_ = 0;    // of \u, still to come
  std::string scalar_;
};

/// Appends a JSON string's inside that stands for `text`: only quotes, backslashes and control characters are
/// escaped.
void append_json_escaped(std::string& out, std::string_view text);

/// A control character as the inside of a JSON string has it.
std::string json_control_escape(char c);

}  // namespace qwench
