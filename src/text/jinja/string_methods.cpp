#include <map>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/methods.h"
#include "text/jinja/printf_format.h"
#include "text/jinja/search.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

const String& text_of_self(const Value& self) { return self.as<String>(); }

Value made(Runtime& rt, const Value& self, TrackedText text) {
  rt.check_size(text.size());
  return rt.heap.string(std::move(text), self.as<String>().markup);
}

template <LetterCase target>
Value case_method(Runtime& rt, const Value& self, Arguments& arguments) {
  bind_positional("str method", arguments, 0, 0);
  rt.work(text_of_self(self).text.size() * 8);
  return made(rt, self, change_case(text_of_self(self).text, target));
}

template <bool left, bool right>
Value strip_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value characters = bind_positional("strip", arguments, 0, 1)[0];
  const String& string = text_of_self(self);
  ByteSpan kept;
  if (characters.is_missing() || characters.is_none()) {
    kept = strip(string.text.view(), nullptr, left, right);
  } else {
    const std::string_view set = to_string_argument("strip", characters).text.view();
    rt.work(set.size() * 16);
    kept = strip(string.text.view(), &set, left, right);
  }
  return substring(rt, string, kept.begin, kept.end);
}

int64_t limit_argument(const char* function, const Value& value) {
  return value.is_missing() ? -1 : to_index(function, value);
}

template <bool from_right>
Value split_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind("split", arguments, {"sep", "maxsplit"}, 0);
  const String& string = text_of_self(self);
  const int64_t max = limit_argument("split", bound[1]);
  rt.work(string.text.size());
  if (bound[0].is_missing() || bound[0].is_none()) {
    return list_of_parts(rt, string,
                         from_right ? split_spaces_right(rt, string.text.view(), max)
                                    : split_spaces(rt, string.text.view(), max));
  }
  const std::string_view separator = to_string_argument("split", bound[0]).text.view();
  if (separator.empty()) fail("empty separator");
  return list_of_parts(rt, string,
                       from_right ? split_on_right(rt, string.text.view(), separator, max)
                                  : split_on(rt, string.text.view(), separator, max));
}

Value split_lines_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind("splitlines", arguments, {"keepends"}, 0);
  const String& string = text_of_self(self);
  rt.work(string.text.size());
  return list_of_parts(rt, string, split_lines(rt, string.text.view(), truthy(rt, bound[0])));
}

template <bool from_right>
Value partition_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value argument = bind_positional("partition", arguments, 1, 1)[0];
  const String& separator = to_string_argument("partition", argument);
  const String& string = text_of_self(self);
  if (separator.text.empty()) fail("empty separator");
  const std::string_view text = string.text.view();
  const size_t at = from_right ? find_last_text(rt, text, separator.text.view(), text.size())
                               : find_text(rt, text, separator.text.view());
  if (at == std::string_view::npos) {
    const Value empty = made(rt, self, {});
    return from_right ? rt.heap.tuple({empty, empty, self}) : rt.heap.tuple({self, empty, empty});
  }
  const size_t after = at + separator.text.size();
  return rt.heap.tuple({substring(rt, string, 0, at), substring(rt, string, at, after),
                        substring(rt, string, after, text.size())});
}

Value replace_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind_positional("replace", arguments, 2, 3);
  const String& old = to_string_argument("replace", bound[0]);
  const String& with = to_string_argument("replace", bound[1]);
  const bool escape = text_of_self(self).markup && !with.markup;
  return made(rt, self,
              replace(rt, text_of_self(self).text, old.text.view(),
                      escape ? escape_html(with.text) : with.text, limit_argument("replace", bound[2])));
}

Value join_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value items = bind_positional("join", arguments, 1, 1)[0];
  const String& separator = text_of_self(self);
  TrackedText out;
  const IteratorPtr iterator = iterate(rt, items);
  size_t index = 0;
  for (Value each; iterator->next(rt, each); ++index) {
    if (index != 0) out.append(separator.text);
    if (separator.markup) {
      out.append(escape_html(rt, each));
    } else {
      if (!each.is_string())
        fail(fmt::format("sequence item {}: expected str instance, {} found", index, type_name(each)));
      out.append(each.as<String>().text);
    }
    rt.check_size(out.size());
  }
  rt.work(out.size());
  return made(rt, self, std::move(out));
}

/// The bytes [start, end) of the optional arguments, in code points, of find, count and startswith; false
/// when start lies behind the end.
bool byte_range(const String& string, const Value& start, const Value& end, size_t& begin, size_t& stop) {
  const int64_t length = static_cast<int64_t>(string.length);
  const auto at = [&](const Value& value, int64_t otherwise) {
    if (value.is_missing() || value.is_none()) return otherwise;
    const int64_t index = to_index("slice", value);
    if (index < 0) return std::max<int64_t>(0, index < -length ? 0 : index + length);
    return index;
  };
  const int64_t first = at(start, 0);
  const int64_t last = std::min(at(end, length), length);
  if (first > last) return false;
  const auto byte = [&](int64_t index) {
    return string.ascii() ? static_cast<size_t>(index)
                          : byte_of_code_point(string.text.view(), static_cast<size_t>(index));
  };
  begin = first == 0 ? 0 : byte(first);
  stop = last == length ? string.text.size() : byte(last);
  return true;
}

template <bool from_right, bool must_be_there>
Value find_in_text(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind_positional("find", arguments, 1, 3);
  const std::string_view needle = to_string_argument("find", bound[0]).text.view();
  const String& string = text_of_self(self);
  size_t begin = 0;
  size_t end = 0;
  size_t at = std::string_view::npos;
  if (byte_range(string, bound[1], bound[2], begin, end)) {
    const std::string_view part = string.text.view().substr(begin, end - begin);
    at = from_right ? find_last_text(rt, part, needle, part.size()) : find_text(rt, part, needle);
  }
  if (at == std::string_view::npos) {
    if (must_be_there) fail("substring not found");
    return Value::integer(-1);
  }
  return Value::integer(static_cast<int64_t>(count_code_points(string.text.view().substr(0, begin + at))));
}

Value count_substring(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind_positional("count", arguments, 1, 3);
  const std::string_view needle = to_string_argument("count", bound[0]).text.view();
  const String& string = text_of_self(self);
  size_t begin = 0;
  size_t end = 0;
  if (!byte_range(string, bound[1], bound[2], begin, end)) return Value::integer(0);
  const std::string_view part = string.text.view().substr(begin, end - begin);
  if (needle.empty()) return Value::integer(static_cast<int64_t>(count_code_points(part)) + 1);
  return Value::integer(static_cast<int64_t>(split_on(rt, part, needle, -1).size()) - 1);
}

template <bool at_end>
Value affix_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const char* const name = at_end ? "endswith" : "startswith";
  const auto bound = bind_positional(name, arguments, 1, 3);
  const String& string = text_of_self(self);
  size_t begin = 0;
  size_t end = 0;
  const bool inside = byte_range(string, bound[1], bound[2], begin, end);
  const auto matches = [&](const Value& affix) {
    const std::string_view text = to_string_argument(name, affix).text.view();
    const std::string_view part = string.text.view().substr(begin, end - begin);
    rt.work(text.size());
    return inside && (at_end ? part.ends_with(text) : part.starts_with(text));
  };
  if (!bound[0].is(Type::tuple)) return Value::boolean(matches(bound[0]));
  for (const Value& affix : bound[0].as<Sequence>().items) {
    rt.step();
    if (matches(affix)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

Value remove_prefix_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value prefix = bind_positional("removeprefix", arguments, 1, 1)[0];
  const String& string = text_of_self(self);
  const std::string_view text = to_string_argument("removeprefix", prefix).text.view();
  return substring(rt, string, string.text.view().starts_with(text) ? text.size() : 0, string.text.size());
}

Value remove_suffix_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value suffix = bind_positional("removesuffix", arguments, 1, 1)[0];
  const String& string = text_of_self(self);
  const std::string_view text = to_string_argument("removesuffix", suffix).text.view();
  return substring(rt, string, 0,
                   string.text.size() - (string.text.view().ends_with(text) ? text.size() : 0));
}

enum class Side : uint8_t { left, right, both };

template <Side side>  // where the text goes
Value justify_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind_positional("justify", arguments, 1, 2);
  TrackedText fill = TrackedText::of_template(" ");
  if (!bound[1].is_missing()) {
    const String& given = to_string_argument("justify", bound[1]);
    if (given.length != 1) fail("The fill character must be exactly one character long");
    fill = given.text;
  }
  const String& string = text_of_self(self);
  const int64_t width = to_index("justify", bound[0]);
  if (width <= static_cast<int64_t>(string.length)) return self;
  if (side == Side::both) return made(rt, self, center(rt, string.text, width, fill));
  const size_t missing = static_cast<size_t>(width) - string.length;
  return made(
      rt, self,
      pad(rt, string.text, side == Side::right ? missing : 0, side == Side::left ? missing : 0, fill));
}

Value zfill_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value argument = bind_positional("zfill", arguments, 1, 1)[0];
  const String& string = text_of_self(self);
  const int64_t width = to_index("zfill", argument);
  if (width <= static_cast<int64_t>(string.length)) return self;
  const bool sign = !string.text.empty() && (string.text.str()[0] == '+' || string.text.str()[0] == '-');
  TrackedText out = string.text.slice(0, sign ? 1 : 0);
  out.append(pad(rt, string.text.slice(sign ? 1 : 0, string.text.size()),
                 static_cast<size_t>(width) - string.length, 0, TrackedText::of_template("0")));
  return made(rt, self, std::move(out));
}

Value expand_tabs_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind("expandtabs", arguments, {"tabsize"}, 0);
  const int64_t tab = bound[0].is_missing() ? 8 : to_index("expandtabs", bound[0]);
  const TrackedText& text = text_of_self(self).text;
  TrackedText out;
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.view().substr(at));
    const size_t next = at + static_cast<size_t>(c.length);
    if (c.code == '\t') {
      const int64_t spaces = tab > 0 ? tab - column % tab : 0;
      rt.check_size(out.size() + static_cast<size_t>(spaces));
      out.append(std::string(static_cast<size_t>(spaces), ' '), text.is_input(at));
      column += spaces;
    } else {
      out.append(text, at, next);
      column = c.code == '\n' || c.code == '\r' ? 0 : column + 1;
    }
    at = next;
  }
  rt.work(out.size());
  return made(rt, self, std::move(out));
}

Value format_method(Runtime& rt, const Value& self, Arguments& arguments) {
  return format_braces(rt, self, arguments, nullptr);
}

Value format_map_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value mapping = bind_positional("format_map", arguments, 1, 1)[0];
  return format_braces(rt, self, {}, &mapping);
}

Value encode_method(Runtime&, const Value&, Arguments&) { fail("byte strings are not supported: encode()"); }

Value translate_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value table = bind_positional("translate", arguments, 1, 1)[0];
  const TrackedText& text = text_of_self(self).text;
  TrackedText out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.view().substr(at));
    const size_t next = at + static_cast<size_t>(c.length);
    const Value mapped =
        table.is(Type::dict) ? get_item(rt, table, Value::integer(static_cast<int64_t>(c.code))) : Value();
    if (mapped.is_missing()) fail_type("translate", "a dict", table);
    if (mapped.is_undefined())
      out.append(text, at, next);
    else if (mapped.is_string())
      out.append(mapped.as<String>().text);
    else if (mapped.is_small_integer()) {
      std::string utf8;
      append_utf8(utf8, static_cast<char32_t>(mapped.as_integer()));
      out.append(utf8, mapped.from_input());
    } else if (!mapped.is_none()) {
      fail("character mapping must return integer, None or str");
    }
    rt.check_size(out.size());
    at = next;
  }
  return made(rt, self, std::move(out));
}

}  // namespace

NativeFunction find_string_method(std::string_view name) {
  static const std::map<std::string_view, NativeFunction> methods = {
      {"upper", case_method<LetterCase::upper>},
      {"lower", case_method<LetterCase::lower>},
      {"title", case_method<LetterCase::title>},
      {"capitalize", case_method<LetterCase::capitalize>},
      {"swapcase", case_method<LetterCase::swap>},
      {"casefold", case_method<LetterCase::fold>},
      {"strip", strip_method<true, true>},
      {"lstrip", strip_method<true, false>},
      {"rstrip", strip_method<false, true>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"splitlines", split_lines_method},
      {"partition", partition_method<false>},
      {"rpartition", partition_method<true>},
      {"replace", replace_method},
      {"join", join_method},
      {"find", find_in_text<false, false>},
      {"rfind", find_in_text<true, false>},
      {"index", find_in_text<false, true>},
      {"rindex", find_in_text<true, true>},
      {"count", count_substring},
      {"startswith", affix_method<false>},
      {"endswith", affix_method<true>},
      {"removeprefix", remove_prefix_method},
      {"removesuffix", remove_suffix_method},
      {"ljust", justify_method<Side::left>},
      {"rjust", justify_method<Side::right>},
      {"center", justify_method<Side::both>},
      {"zfill", zfill_method},
      {"expandtabs", expand_tabs_method},
      {"format", format_method},
      {"format_map", format_map_method},
      {"translate", translate_method},
      {"encode", encode_method},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

}  // namespace qwench::jinja
