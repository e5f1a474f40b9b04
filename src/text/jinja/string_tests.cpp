#include <map>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/methods.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

// str.isX: of all characters, and false for the empty string.

template <bool (*predicate)(char32_t), bool of_empty = false>
Value all_characters(Runtime& rt, const Value& self, Arguments& arguments) {
  bind_positional("str test", arguments, 0, 0);
  const std::string_view text = self.as<String>().text.view();
  rt.work(text.size() * 8);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (!predicate(c.code)) return Value::boolean(false);
    at += static_cast<size_t>(c.length);
  }
  return Value::boolean(of_empty || !text.empty());
}

bool is_ascii_character(char32_t c) { return c < 0x80; }

template <bool upper>
Value is_case(Runtime& rt, const Value& self, Arguments& arguments) {
  bind_positional("str test", arguments, 0, 0);
  rt.work(self.as<String>().text.size() * 8);
  return Value::boolean(has_only_case(self.as<String>().text.view(), upper));
}

Value is_title_case(Runtime& rt, const Value& self, Arguments& arguments) {
  bind_positional("istitle", arguments, 0, 0);
  const std::string_view text = self.as<String>().text.view();
  rt.work(text.size() * 8);
  bool any = false;
  bool after_cased = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (is_upper(c.code) || is_title(c.code)) {
      if (after_cased) return Value::boolean(false);
      any = after_cased = true;
    } else if (is_lower(c.code)) {
      if (!after_cased) return Value::boolean(false);
      any = after_cased = true;
    } else {
      after_cased = false;
    }
    at += static_cast<size_t>(c.length);
  }
  return Value::boolean(any);
}

Value is_identifier(Runtime& rt, const Value& self, Arguments& arguments) {
  bind_positional("isidentifier", arguments, 0, 0);
  const std::string_view text = self.as<String>().text.view();
  rt.work(text.size() * 8);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (!(at == 0 ? is_identifier_start(c.code) : is_identifier_part(c.code))) return Value::boolean(false);
    at += static_cast<size_t>(c.length);
  }
  return Value::boolean(!text.empty());
}

}  // namespace

bool has_only_case(std::string_view text, bool upper) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (upper ? is_lower(c.code) || is_title(c.code) : is_upper(c.code) || is_title(c.code)) return false;
    any = any || (upper ? is_upper(c.code) : is_lower(c.code));
    at += static_cast<size_t>(c.length);
  }
  return any;
}

NativeFunction find_string_test(std::string_view name) {
  static const std::map<std::string_view, NativeFunction> tests = {
      {"isalnum", all_characters<is_alnum>},
      {"isalpha", all_characters<is_alpha>},
      {"isascii", all_characters<is_ascii_character, true>},
      {"isdecimal", all_characters<is_decimal>},
      {"isdigit", all_characters<is_digit>},
      {"isnumeric", all_characters<is_numeric>},
      {"isprintable", all_characters<is_printable, true>},
      {"isspace", all_characters<is_space>},
      {"islower", is_case<false>},
      {"isupper", is_case<true>},
      {"istitle", is_title_case},
      {"isidentifier", is_identifier},
  };
  const auto found = tests.find(name);
  return found == tests.end() ? nullptr : found->second;
}

}  // namespace qwench::jinja
