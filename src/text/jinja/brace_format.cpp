#include <algorithm>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/number_format.h"
#include "text/jinja/operations.h"
#include "text/jinja/printf_format.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int64_t to_number(std::string_view digits) {
  if (digits.size() > 18) fail("Too many decimal digits in format string");
  int64_t value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

TrackedText format_string(Runtime& rt, const TrackedText& text, const FormatSpec& spec, bool fill_input) {
  if (spec.type != '\0' && spec.type != 's')
    fail(fmt::format("Unknown format code '{}' for object of type 'str'", spec.type));
  if (spec.sign != '\0') fail("Sign not allowed in string format specifier");
  if (spec.alternate) fail("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=') fail("'=' alignment not allowed in string format specifier");
  if (spec.grouping != '\0') fail(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  const size_t end =
      spec.precision < 0 ? text.size() : byte_of_code_point(text.view(), static_cast<size_t>(spec.precision));
  const size_t length = count_code_points(text.view().substr(0, end));
  const size_t width = spec.width < 0 ? 0 : static_cast<size_t>(spec.width);
  const size_t missing = width > length ? width - length : 0;
  rt.check_size(end + missing * spec.fill.size());
  size_t left = 0;
  if (spec.align == '>') left = missing;
  if (spec.align == '^') left = missing / 2;
  TrackedText out;
  for (size_t i = 0; i < left; ++i) out.append(spec.fill, fill_input);
  out.append(text, 0, end);
  for (size_t i = left; i < missing; ++i) out.append(spec.fill, fill_input);
  return out;
}

/// Python's format(value, spec).
TrackedText format_value(Runtime& rt, const Value& value, const TrackedText& spec) {
  if (spec.empty()) return to_text(rt, value);
  if (value.is_number()) {
    const FormatSpec parsed = FormatSpec::parse(spec.view());
    if (parsed.width > 0) rt.check_size(static_cast<size_t>(parsed.width) * parsed.fill.size());
    TrackedText out;
    out.append(format_number(value, parsed), value.from_input() || spec.has_input());
    return out;
  }
  if (value.is_string())
    return format_string(rt, value.as<String>().text, FormatSpec::parse(spec.view()), spec.has_input());
  fail("unsupported format string passed to " + type_name(value) + ".__format__");
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& rt, const Arguments& arguments, const Value* mapping, bool markup)
      : rt_(rt), arguments_(arguments), mapping_(mapping), markup_(markup) {}

  TrackedText run(const TrackedText& format, int depth) {
    if (depth < 0) fail("Max string recursion exceeded");
    const std::string_view text = format.view();
    TrackedText out;
    for (size_t at = 0; at < text.size();) {
      const size_t brace = text.find_first_of("{}", at);
      if (brace == std::string_view::npos) {
        out.append(format, at, text.size());
        break;
      }
      out.append(format, at, brace);
      at = brace + 1;
      if (at < text.size() && text[at] == text[brace]) {
        out.append(format, brace, at);
        ++at;
        continue;
      }
      if (text[brace] == '}') fail("Single '}' encountered in format string");
      const size_t end = field_end(text, at);
      out.append(field(format, at, end, depth));
      rt_.check_size(out.size());
      at = end + 1;
    }
    return out;
  }

 private:
  static size_t field_end(std::string_view text, size_t at) {
    int open = 1;
    for (; at < text.size(); ++at) {
      if (text[at] == '{') ++open;
      if (text[at] == '}' && --open == 0) return at;
      if (text[at] == '[' && open == 1) {
        const size_t close = text.find(']', at);
        if (close != std::string_view::npos &&
            text.substr(at, close - at).find_first_of(":!") == std::string_view::npos)
          at = close;
      }
    }
    fail("expected '}' before end of string");
  }

  TrackedText field(const TrackedText& format, size_t begin, size_t end, int depth) {
    const std::string_view text = format.view();
    size_t name_end = begin;
    bool bracket = false;
    while (name_end < end && (bracket || (text[name_end] != '!' && text[name_end] != ':'))) {
      if (text[name_end] == '{') fail("unexpected '{' in field name");
      if (text[name_end] == '[') bracket = true;
      if (text[name_end] == ']') bracket = false;
      ++name_end;
    }
    char conversion = '\0';
    size_t spec_begin = name_end;
    if (spec_begin < end && text[spec_begin] == '!') {
      if (spec_begin + 1 >= end) fail("end of string while looking for conversion specifier");
      conversion = text[spec_begin + 1];
      spec_begin += 2;
      if (spec_begin < end && text[spec_begin] != ':') fail("expected ':' after conversion specifier");
    }
    if (spec_begin < end) ++spec_begin;
    Value value = lookup(std::string(text.substr(begin, name_end - begin)));
    const TrackedText spec = run(format.slice(spec_begin, end), depth - 1);
    TrackedText result;
    switch (conversion) {
      case '\0':
        result = format_value(rt_, value, spec);
        break;
      case 's':
        result = format_value(rt_, rt_.heap.string(to_text(rt_, value)), spec);
        break;
      case 'r':
      case 'a': {
        TrackedText shown = repr(rt_, value);
        if (conversion == 'a' && !is_ascii(shown.view()))
          fail("the conversion !a is not supported beyond ASCII");
        result = format_value(rt_, rt_.heap.string(std::move(shown)), spec);
        break;
      }
      default:
        fail(fmt::format("Unknown conversion specifier {}", conversion));
    }
    return markup_ && !(conversion == '\0' && is_markup(value)) ? escape_html(result) : result;
  }

  Value lookup(std::string name) {
    if (name.empty()) {
      if (numbering_ == Numbering::manual)
        fail("cannot switch from manual field specification to automatic field numbering");
      numbering_ = Numbering::automatic;
      name = std::to_string(next_++);
    } else if (all_digits(name)) {
      if (numbering_ == Numbering::automatic)
        fail("cannot switch from automatic field numbering to manual field specification");
      numbering_ = Numbering::manual;
    }
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = first(std::string_view(name).substr(0, first_end));
    for (size_t at = first_end; at < name.size();) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) fail("Empty attribute in format string");
        value = get_attribute(rt_, value, std::string_view(name).substr(at + 1, end - at - 1));
        at = end;
      } else if (name[at] == '[') {
        const size_t close = name.find(']', at);
        if (close == std::string::npos) fail("Missing ']' in format string");
        const std::string key = name.substr(at + 1, close - at - 1);
        if (key.empty()) fail("Empty attribute in format string");
        value = get_item(rt_, value, all_digits(key) ? Value::integer(to_number(key)) : rt_.heap.string(key));
        at = close + 1;
      } else {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value first(std::string_view name) {
    if (all_digits(name)) {
      const size_t index = static_cast<size_t>(to_number(name));
      if (index >= arguments_.positional.size())
        fail("Replacement index " + std::string(name) + " out of range for positional args tuple");
      return arguments_.positional[index];
    }
    if (mapping_ != nullptr) {
      const Value* found = mapping_->is(Type::dict) ? mapping_->as<Dict>().find(name) : nullptr;
      if (found == nullptr) fail(fmt::format("'{}'", name));
      return *found;
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    fail(fmt::format("'{}'", name));
  }

  enum class Numbering : uint8_t { undecided, automatic, manual };

  Runtime& rt_;
  const Arguments& arguments_;
  const Value* mapping_;
  bool markup_;
  Numbering numbering_ = Numbering::undecided;
  int next_ = 0;
};

}  // namespace

Value format_braces(Runtime& rt, const Value& format, const Arguments& arguments, const Value* mapping) {
  const String& string = format.as<String>();
  rt.work(string.text.size());
  return rt.heap.string(BraceFormatter(rt, arguments, mapping, string.markup).run(string.text, 2),
                        string.markup);
}

}  // namespace qwench::jinja
