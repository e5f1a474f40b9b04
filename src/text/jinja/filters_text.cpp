#include <cmath>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/builtins.h"
#include "text/jinja/printf_format.h"
#include "text/jinja/search.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"
#include "text/jinja/wrap.h"

namespace qwench::jinja {
namespace {

Value string_value(Runtime& rt, TrackedText text, bool markup) {
  rt.check_size(text.size());
  return rt.heap.string(std::move(text), markup);
}

template <LetterCase target>
Value case_filter(Runtime& rt, Arguments& arguments) {
  const Value string = soft_string(rt, bind("case filter", arguments, {"s"}, 1)[0]);
  rt.work(string.as<String>().text.size() * 8);
  return string_value(rt, change_case(string.as<String>().text, target), is_markup(string));
}

Value title_filter(Runtime& rt, Arguments& arguments) {
  const Value value = soft_string(rt, bind("title", arguments, {"s"}, 1)[0]);
  const TrackedText& text = value.as<String>().text;
  rt.work(text.size() * 16);
  // Words begin after white space, hyphens and opening brackets; unlike str.title, not after apostrophes.
  TrackedText out;
  const auto add_word = [&](size_t begin, size_t end) {
    if (begin == end) return;
    const size_t second = begin + static_cast<size_t>(decode_utf8(text.view().substr(begin)).length);
    out.append(change_case(text.slice(begin, second), LetterCase::upper));
    out.append(change_case(text.slice(second, end), LetterCase::lower));
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.view().substr(at));
    const size_t next = at + static_cast<size_t>(c.length);
    if (c.code == '-' || c.code == '(' || c.code == '{' || c.code == '[' || c.code == '<' ||
        is_space(c.code)) {
      add_word(begin, at);
      out.append(text, at, next);
      begin = next;
    }
    at = next;
  }
  add_word(begin, text.size());
  return string_value(rt, std::move(out), false);
}

Value trim_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("trim", arguments, {"value", "chars"}, 1);
  const Value value = soft_string(rt, bound[0]);
  const String& string = value.as<String>();
  ByteSpan kept;
  if (bound[1].is_missing() || bound[1].is_none()) {
    kept = strip(string.text.view(), nullptr, true, true);
  } else {
    const std::string_view characters = to_string_argument("strip", bound[1]).text.view();
    rt.work(characters.size() * 16);
    kept = strip(string.text.view(), &characters, true, true);
  }
  return substring(rt, string, kept.begin, kept.end);
}

Value replace_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("replace", arguments, {"s", "old", "new", "count"}, 3);
  const bool unlimited = bound[3].is_missing() || bound[3].is_none();
  const int64_t max = unlimited ? -1 : to_index("replace", bound[3]);
  TrackedText s, o, n;
  const TrackedText& old = text_of(rt, bound[1], o);
  const TrackedText& with = text_of(rt, bound[2], n);
  if (!rt.autoescape)
    return string_value(rt, replace(rt, text_of(rt, bound[0], s), old.view(), with, max), false);
  const bool escape = is_markup(bound[1]) || (is_markup(bound[2]) && !is_markup(bound[0]));
  const TrackedText text = escape ? escape_html(rt, bound[0]) : text_of(rt, bound[0], s);
  const bool markup = escape || is_markup(bound[0]);
  return string_value(rt, replace(rt, text, old.view(), markup ? escape_html(rt, bound[2]) : with, max),
                      markup);
}

Value indent_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("indent", arguments, {"s", "width", "first", "blank"}, 1);
  TrackedText indention;
  if (bound[1].is_string()) {
    indention = bound[1].as<String>().text;
  } else {
    const int64_t width = bound[1].is_missing() ? 4 : std::max<int64_t>(0, to_index("indent", bound[1]));
    indention = pad(rt, {}, static_cast<size_t>(width), 0, TrackedText::of_template(" "));
  }
  if (bound[0].is_undefined()) fail_undefined(bound[0]);
  const String& string = to_string_argument("indent", bound[0]);
  if (string.markup && !is_markup(bound[1])) indention = escape_html(indention);
  const bool first = truthy(rt, bound[2]);
  const bool blank = truthy(rt, bound[3]);
  TrackedText text = string.text;
  text.append("\n", false);
  rt.work(text.size() * 4);
  TrackedText out;
  bool is_first = true;
  for (const ByteSpan& line : split_lines(rt, text.view(), false)) {
    if (!is_first) out.append("\n", false);
    if (is_first ? first : blank || line.begin != line.end) out.append(indention);
    is_first = false;
    out.append(text, line.begin, line.end);
    rt.check_size(out.size());
  }
  return string_value(rt, std::move(out), string.markup);
}

Value truncate_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("truncate", arguments, {"s", "length", "killwords", "end", "leeway"}, 1);
  const bool real =
      bound[1].is(Type::real) && std::fabs(bound[1].as_real()) < 1e18;  // enough to compare with
  const int64_t limit = bound[1].is_missing() ? 255
                                              : (real ? static_cast<int64_t>(bound[1].as_real())
                                                      : to_index("truncate", bound[1]));
  const TrackedText end =
      bound[3].is_missing() ? TrackedText::of_template("...") : to_string_argument("truncate", bound[3]).text;
  const int64_t end_length = static_cast<int64_t>(count_code_points(end.view()));
  const int64_t leeway = bound[4].is_missing() || bound[4].is_none() ? 5 : to_index("truncate", bound[4]);
  if (limit < end_length) fail(fmt::format("expected length >= {}, got {}", end_length, limit));
  if (leeway < 0) fail(fmt::format("expected leeway >= 0, got {}", leeway));
  const auto size = length(rt, bound[0]);
  if (!size) fail("object of type '" + type_name(bound[0]) + "' has no len()");
  if (*size <= limit || *size - limit <= leeway) return bound[0];
  if (real) fail("slice indices must be integers or None or have an __index__ method");
  const String& string = to_string_argument("truncate", bound[0]);
  size_t kept = byte_of_code_point(string.text.view(), static_cast<size_t>(limit - end_length));
  if (!truthy(rt, bound[2])) {
    const size_t space = string.text.view().substr(0, kept).rfind(' ');
    if (space != std::string_view::npos) kept = space;
  }
  TrackedText out = string.text.slice(0, kept);
  out.append(string.markup ? escape_html(end) : end);
  return string_value(rt, std::move(out), string.markup);
}

Value wordwrap_filter(Runtime& rt, Arguments& arguments) {
  const auto bound =
      bind("wordwrap", arguments, {"s", "width", "break_long_words", "wrapstring", "break_on_hyphens"}, 1);
  if (bound[0].is_undefined()) fail_undefined(bound[0]);
  const String& string = to_string_argument("wordwrap", bound[0]);
  WrapOptions options;
  if (bound[1].is(Type::real) && std::fabs(bound[1].as_real()) < 1e18) {
    options.width = static_cast<int64_t>(std::floor(bound[1].as_real()));
    options.fractional = true;
  } else if (!bound[1].is_missing()) {
    options.width = to_index("wordwrap", bound[1]);
  }
  if (!bound[2].is_missing()) options.break_long_words = truthy(rt, bound[2]);
  if (!bound[4].is_missing()) options.break_on_hyphens = truthy(rt, bound[4]);
  const TrackedText newline = TrackedText::of_template("\n");
  const TrackedText& separator =
      bound[3].is_missing() || bound[3].is_none() ? newline : to_string_argument("wordwrap", bound[3]).text;
  const auto lines = split_lines(rt, string.text.view(), false);
  const bool too_narrow = options.fractional ? bound[1].as_real() <= 0 : options.width <= 0;
  if (too_narrow && !lines.empty()) fail(fmt::format("invalid width {} (must be > 0)", options.width));
  TrackedText out;
  bool first = true;
  for (const ByteSpan& line : lines) {
    if (!first) out.append(separator);
    first = false;
    out.append(wrap(rt, string.text.slice(line.begin, line.end), options, separator));
    rt.check_size(out.size());
  }
  return string_value(rt, std::move(out), false);
}

Value wordcount_filter(Runtime& rt, Arguments& arguments) {
  TrackedText storage;
  const auto bound = bind("wordcount", arguments, {"s"}, 1);
  const std::string_view text = text_of(rt, bound[0], storage).view();
  rt.work(text.size() * 8);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    const bool word = is_alnum(c.code) || c.code == '_';
    if (word && !inside) ++words;
    inside = word;
    at += static_cast<size_t>(c.length);
  }
  return Value::integer(words);
}

Value center_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("center", arguments, {"value", "width"}, 1);
  const Value value = soft_string(rt, bound[0]);
  const int64_t width = bound[1].is_missing() ? 80 : to_index("center", bound[1]);
  return string_value(rt, center(rt, value.as<String>().text, width, TrackedText::of_template(" ")),
                      is_markup(value));
}

Value format_filter(Runtime& rt, Arguments& arguments) {
  if (arguments.positional.size() > 1 && !arguments.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  const Value format = soft_string(rt, arguments.positional[0]);
  if (!arguments.named.empty()) {
    auto names = std::make_shared<Dict>();
    for (auto& [name, value] : arguments.named) names->set(rt.heap.string(name), value);
    return format_printf(rt, format, rt.heap.dict(std::move(names)));
  }
  arguments.positional.erase(arguments.positional.begin());
  return format_printf(rt, format, rt.heap.tuple(std::move(arguments.positional)));
}

Value string_filter(Runtime& rt, Arguments& arguments) {
  return soft_string(rt, bind("string", arguments, {"s"}, 1)[0]);
}

}  // namespace

void add_text_filters(FilterTable& table) {
  table["upper"] = case_filter<LetterCase::upper>;
  table["lower"] = case_filter<LetterCase::lower>;
  table["capitalize"] = case_filter<LetterCase::capitalize>;
  table["title"] = title_filter;
  table["trim"] = trim_filter;
  table["replace"] = replace_filter;
  table["indent"] = indent_filter;
  table["truncate"] = truncate_filter;
  table["wordwrap"] = wordwrap_filter;
  table["wordcount"] = wordcount_filter;
  table["center"] = center_filter;
  table["format"] = format_filter;
  table["string"] = string_filter;
}

}  // namespace qwench::jinja
