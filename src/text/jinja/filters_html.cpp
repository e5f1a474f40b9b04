#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/utf8.h"
#include "text/jinja/builtins.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"
#include "text/jinja/urlize.h"

namespace qwench::jinja {
namespace {

Value escape_filter(Runtime& rt, Arguments& arguments) {
  return rt.heap.string(escape_html(rt, bind("escape", arguments, {"s"}, 1)[0]), true);
}

Value force_escape_filter(Runtime& rt, Arguments& arguments) {
  const TrackedText text = to_text(rt, bind("forceescape", arguments, {"value"}, 1)[0]);
  rt.work(text.size());
  TrackedText escaped = escape_html(text);
  rt.check_size(escaped.size());
  return rt.heap.string(std::move(escaped), true);
}

Value safe_filter(Runtime& rt, Arguments& arguments) {
  return rt.heap.string(to_text(rt, bind("safe", arguments, {"value"}, 1)[0]), true);
}

/// The character of an HTML reference "&NAME;" or "&#N;" that begins `text`, and its length; 0 when it is
/// none.
size_t decode_reference(std::string_view text, std::string& out) {
  struct Named {
    std::string_view name, character;
  };
  constexpr std::array named = {Named{"amp", "&"},        Named{"lt", "<"},        Named{"gt", ">"},
                                Named{"quot", "\""},      Named{"apos", "'"},      Named{"nbsp", "\u00A0"},
                                Named{"copy", "\u00A9"},  Named{"reg", "\u00AE"},  Named{"hellip", "\u2026"},
                                Named{"mdash", "\u2014"}, Named{"ndash", "\u2013"}};
  const size_t end = text.substr(0, 32).find(';');
  if (end == std::string_view::npos || end < 2) return 0;
  const std::string_view name = text.substr(1, end - 1);
  if (name[0] == '#') {
    const bool hex = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
    const auto value = BigInt::parse(name.substr(hex ? 2 : 1), hex ? 16 : 10);
    if (!value || name.size() == (hex ? 2U : 1U)) return 0;
    const auto code = value->to_int64();
    append_utf8(
        out, code && *code > 0 && *code <= 0x10FFFF ? static_cast<char32_t>(*code) : kReplacementCharacter);
    return end + 1;
  }
  const auto* found =
      std::find_if(named.begin(), named.end(), [&](const Named& each) { return each.name == name; });
  if (found == named.end()) return 0;
  out += found->character;
  return end + 1;
}

/// Without each part from `open` to `close`.
TrackedText without_parts(const TrackedText& text, std::string_view open, std::string_view close) {
  TrackedText out;
  size_t copied = 0;
  while (true) {
    const size_t begin = text.view().find(open, copied);
    const size_t end = begin == std::string_view::npos ? begin : text.view().find(close, begin);
    if (end == std::string_view::npos) break;
    out.append(text, copied, begin);
    copied = end + close.size();
  }
  out.append(text, copied, text.size());
  return out;
}

Value strip_tags_filter(Runtime& rt, Arguments& arguments) {
  TrackedText text = to_text(rt, bind("striptags", arguments, {"value"}, 1)[0]);
  rt.work(text.size() * 4);
  text = without_parts(without_parts(text, "<!--", "-->"), "<", ">");
  TrackedText joined;
  for (const ByteSpan& word : split_spaces(rt, text.view(), -1)) {
    if (!joined.empty()) joined.append(" ", false);
    joined.append(text, word.begin, word.end);
  }
  TrackedText out;
  for (size_t at = 0; at < joined.size();) {
    std::string character;
    const size_t length = joined.str()[at] == '&' ? decode_reference(joined.view().substr(at), character) : 0;
    if (length == 0) {
      const size_t next = std::min(joined.view().find('&', at + 1), joined.size());
      out.append(joined, at, next);
      at = next;
    } else {
      out.append(character, joined.is_input(at));
      at += length;
    }
  }
  return rt.heap.string(std::move(out));
}

void append_quoted(TrackedText& out, const TrackedText& text, bool for_query) {
  OriginReader origin(text);
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text.str()[at];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query);
    const bool input = origin.is_input(at);
    if (plain)
      out.append({&c, 1}, input);
    else if (c == ' ' && for_query)
      out.append("+", input);
    else
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), input);
  }
}

Value urlencode_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind("urlencode", arguments, {"value"}, 1)[0];
  if (value.is_string()) rt.work(value.as<String>().text.size() * 128);
  TrackedText out;
  TrackedText storage;
  if (value.is_string() || !is_iterable(rt, value)) {
    append_quoted(out, text_of(rt, value, storage), false);
  } else {
    std::vector<Value> pairs;
    if (value.is(Type::dict)) {
      for (const auto& [key, item] : value.as<Dict>().entries()) pairs.push_back(rt.heap.tuple({key, item}));
    } else {
      pairs = to_vector(rt, value);
    }
    for (const Value& pair : pairs) {
      const std::vector<Value> items = to_vector(rt, pair);
      if (items.size() != 2) fail("urlencode: expected pairs of key and value");
      if (!out.empty()) out.append("&", false);
      append_quoted(out, text_of(rt, items[0], storage), true);
      out.append("=", false);
      append_quoted(out, text_of(rt, items[1], storage), true);
      rt.check_size(out.size());
    }
  }
  rt.work(out.size());
  rt.check_size(out.size());
  return rt.heap.string(std::move(out));
}

Value xmlattr_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("xmlattr", arguments, {"d", "autospace"}, 1);
  if (bound[0].is_undefined()) fail_undefined(bound[0]);
  if (!bound[0].is(Type::dict)) fail_type("xmlattr", "a dict", bound[0]);
  TrackedText out;
  for (const auto& [key, value] : bound[0].as<Dict>().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    const String& name = to_string_argument("xmlattr", key);
    if (name.text.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail("Invalid character in attribute name: " + repr(rt, key).str());
    }
    if (!out.empty()) out.append(" ", false);
    out.append(escape_html(rt, key));
    out.append("=\"", false);
    out.append(escape_html(rt, value));
    out.append("\"", false);
    rt.check_size(out.size());
  }
  if (!out.empty() && (bound[1].is_missing() || truthy(rt, bound[1])))
    out = TrackedText::of_template(" ") + out;
  return rt.heap.string(std::move(out), rt.autoescape);
}

Value urlize_filter(Runtime& rt, Arguments& arguments) {
  const auto bound =
      bind("urlize", arguments, {"value", "trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, 1);
  UrlizeOptions options;
  if (!bound[1].is_missing() && !bound[1].is_none()) options.trim_limit = to_index("urlize", bound[1]);
  std::vector<std::string> relations = {"noopener"};
  if (truthy(rt, bound[2])) relations.emplace_back("nofollow");
  if (truthy(rt, bound[4])) {
    const std::string_view given = to_string_argument("urlize", bound[4]).text.view();
    for (const ByteSpan& part : split_spaces(rt, given, -1))
      relations.emplace_back(given.substr(part.begin, part.end - part.begin));
  }
  std::sort(relations.begin(), relations.end());
  relations.erase(std::unique(relations.begin(), relations.end()), relations.end());
  options.rel = escape_html(TrackedText::of_template(fmt::format("{}", fmt::join(relations, " ")))).str();
  if (truthy(rt, bound[3])) options.target = escape_html(rt, bound[3]).str();
  if (truthy(rt, bound[5])) {
    for (const Value& scheme : to_vector(rt, bound[5])) {
      const std::string& text = to_string_argument("urlize", scheme).text.str();
      if (!is_uri_scheme(text)) fail("'" + text + "' is not a valid URI scheme prefix.");
      options.extra_schemes.push_back(text);
    }
  }
  const TrackedText text = escape_html(rt, bound[0]);
  rt.work(text.size() * 32);
  TrackedText out = urlize(text, options);
  if (touches_input(bound[3]) || touches_input(bound[4])) out.mark_all_input();
  rt.check_size(out.size());
  return rt.heap.string(std::move(out), rt.autoescape);
}

Value filesizeformat_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("filesizeformat", arguments, {"value", "binary"}, 1);
  if (bound[0].is_undefined()) fail_undefined(bound[0]);
  double bytes = 0;
  if (bound[0].is_string()) {
    const auto parsed = parse_real(rt, bound[0].as<String>().text.view());
    if (!parsed) fail("could not convert string to float: " + repr(rt, bound[0]).str());
    bytes = *parsed;
  } else if (bound[0].is_number()) {
    bytes = to_double(bound[0]);
  } else {
    fail_type("filesizeformat", "a number", bound[0]);
  }
  const bool binary = truthy(rt, bound[1]);
  const double base = binary ? 1024 : 1000;
  TrackedText out;
  const auto give = [&](const std::string& text) {
    out.append(text, touches_input(bound[0]));
    return rt.heap.string(std::move(out));
  };
  if (bytes == 1) return give("1 Byte");
  if (std::isnan(bytes)) fail("cannot convert float NaN to integer");
  if (bytes < base) return give(fmt::format("{} Bytes", BigInt::truncate(bytes).to_string()));
  double unit = base;
  constexpr std::string_view prefixes = "kMGTPEZY";
  for (const char& prefix : prefixes) {
    unit *= base;
    if (bytes < unit || &prefix == &prefixes.back()) {
      const char first = binary && prefix == 'k' ? 'K' : prefix;
      return give(fmt::format("{:.1f} {}{}", base * bytes / unit, first, binary ? "iB" : "B"));
    }
  }
  return give("");
}

}  // namespace

void add_html_filters(FilterTable& table) {
  table["escape"] = escape_filter;
  table["e"] = escape_filter;
  table["forceescape"] = force_escape_filter;
  table["safe"] = safe_filter;
  table["striptags"] = strip_tags_filter;
  table["urlencode"] = urlencode_filter;
  table["urlize"] = urlize_filter;
  table["xmlattr"] = xmlattr_filter;
  table["filesizeformat"] = filesizeformat_filter;
}

}  // namespace qwench::jinja
