#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {

std::string type_name(const Value& value) {
  switch (value.type()) {
    case Type::missing:
    case Type::undefined:
      return "Undefined";
    case Type::none:
      return "NoneType";
    case Type::boolean:
      return "bool";
    case Type::integer:
    case Type::big_integer:
      return "int";
    case Type::real:
      return "float";
    case Type::string:
      return value.as<String>().markup ? "Markup" : "str";
    case Type::list:
      return "list";
    case Type::tuple:
      return "tuple";
    case Type::dict:
      return "dict";
    case Type::thing:
      return value.as<Thing>().type_name();
  }
  return "";
}

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  // "-d.ddde+XX": the shortest digits that read back as the same number.
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t mark = text.find('e');
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  int exponent = 0;
  const char* first = buffer + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(first, end, exponent);
  std::string result = value < 0 || std::signbit(value) ? "-" : "";
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    result += digits[0];
    if (count > 1) result += "." + digits.substr(1);
    return result + fmt::format("e{}{:02d}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return result + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return result + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  const size_t whole = static_cast<size_t>(exponent) + 1;
  return result + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

std::string scalar_text(const Value& value) {
  switch (value.type()) {
    case Type::none:
      return "None";
    case Type::boolean:
      return value.as_integer() != 0 ? "True" : "False";
    case Type::integer:
      return std::to_string(value.as_integer());
    case Type::real:
      return real_repr(value.as_real());
    default:
      break;
  }
  std::string digits = value.as<BigInteger>().value.to_string();
  if (digits.size() > 4301) fail("Exceeds the limit (4300 digits) for integer string conversion");
  return digits;
}

/// What stands for a character in a repr; empty: the character itself.
std::string escaped_character(uint32_t code, char quote) {
  if (code >= 0x20 && code < 0x7F) {
    if (code == '\\') return "\\\\";
    return code == static_cast<unsigned char>(quote) ? std::string("\\") + quote : "";
  }
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (is_printable(code)) return "";
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

/// Python's repr of a string; an escape has the origin of its character.
void append_string_repr(TrackedText& out, const TrackedText& text) {
  const std::string_view view = text.view();
  const char quote =
      view.find('\'') != std::string_view::npos && view.find('"') == std::string_view::npos ? '"' : '\'';
  const bool quotes_from_input = text.all_input();
  out.append({&quote, 1}, quotes_from_input);
  size_t copied = 0;
  for (size_t at = 0; at < view.size();) {
    const unsigned char byte = static_cast<unsigned char>(view[at]);
    size_t next = at + 1;
    std::string escaped;
    if (byte >= 0x80) {
      const Utf8Char c = decode_utf8(view.substr(at));
      next = at + static_cast<size_t>(c.length);
      escaped = escaped_character(c.code, quote);
    } else if (byte < 0x20 || byte == 0x7F || byte == '\\' || view[at] == quote) {
      escaped = escaped_character(byte, quote);
    }
    if (!escaped.empty()) {
      out.append(text, copied, at);
      out.append(escaped, text.is_input(at));
      copied = next;
    }
    at = next;
  }
  out.append(text, copied, view.size());
  out.append({&quote, 1}, quotes_from_input);
}

void append_repr(Runtime& rt, TrackedText& out, const Value& value);

void append_items(Runtime& rt, TrackedText& out, const Value& value) {
  const auto& items = value.as<Sequence>().items;
  const bool input = value.from_input();
  const bool tuple = value.is(Type::tuple);
  out.append(tuple ? "(" : "[", input);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out.append(", ", input);
    append_repr(rt, out, items[i]);
  }
  out.append(tuple ? (items.size() == 1 ? ",)" : ")") : "]", input);
}

void append_dict(Runtime& rt, TrackedText& out, const Value& value) {
  const bool input = value.from_input();
  bool first = true;
  out.append("{", input);
  for (const auto& [key, item] : value.as<Dict>().entries()) {
    if (!first) out.append(", ", input);
    first = false;
    append_repr(rt, out, key);
    out.append(": ", input);
    append_repr(rt, out, item);
  }
  out.append("}", input);
}

void append_repr(Runtime& rt, TrackedText& out, const Value& value) {
  rt.step();
  rt.check_size(out.size());
  switch (value.type()) {
    case Type::missing:
    case Type::undefined:
      return out.append("Undefined", false);
    case Type::string: {
      const String& string = value.as<String>();
      rt.work(string.text.size());
      if (string.markup) out.append("Markup(", false);
      append_string_repr(out, string.text);
      if (string.markup) out.append(")", false);
      return;
    }
    case Type::list:
    case Type::tuple: {
      const Runtime::Nesting nesting(rt);
      return append_items(rt, out, value);
    }
    case Type::dict: {
      const Runtime::Nesting nesting(rt);
      return append_dict(rt, out, value);
    }
    case Type::thing: {
      const Runtime::Nesting nesting(rt);
      return out.append(value.as<Thing>().repr(rt));
    }
    default:
      return out.append(scalar_text(value), value.from_input());
  }
}

}  // namespace

TrackedText repr(Runtime& rt, const Value& value) {
  TrackedText out;
  append_repr(rt, out, value);
  rt.check_size(out.size());
  return out;
}

TrackedText to_text(Runtime& rt, const Value& value) {
  if (value.is_string()) return value.as<String>().text;
  if (value.is_undefined()) return {};
  return repr(rt, value);
}

const TrackedText& text_of(Runtime& rt, const Value& value, TrackedText& storage) {
  if (value.is_string()) return value.as<String>().text;
  storage = to_text(rt, value);
  return storage;
}

bool is_markup(const Value& value) { return value.is_string() && value.as<String>().markup; }

TrackedText escape_html(const TrackedText& text) {
  TrackedText out;
  size_t copied = 0;
  const std::string_view view = text.view();
  for (size_t at = 0; at < view.size(); ++at) {
    std::string_view entity;
    switch (view[at]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      case '"':
        entity = "&#34;";
        break;
      default:
        continue;
    }
    out.append(text, copied, at);
    out.append(entity, text.is_input(at));
    copied = at + 1;
  }
  out.append(text, copied, text.size());
  return out;
}

TrackedText escape_html(Runtime& rt, const Value& value) {
  if (is_markup(value)) return value.as<String>().text;
  TrackedText storage;
  const TrackedText& text = text_of(rt, value, storage);
  rt.work(text.size());
  TrackedText escaped = escape_html(text);
  rt.check_size(escaped.size());
  return escaped;
}

}  // namespace qwench::jinja
