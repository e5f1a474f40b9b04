#include "grammar/format_check.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "grammar/string_formats.h"

namespace qwench {
namespace {

constexpr const char* kWholeTime =
    "([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
constexpr const char* kWholeLabel = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
constexpr const char* kPointer = "(/([^/~]|~[01])*)*";

int number_at(std::string_view text, size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); }

/// Of a time of kWholeTime's form: a leap second is the last one of a day in UTC.
bool is_time_of_day(std::string_view time) {
  constexpr int kDay = 24 * 60;
  if (number_at(time, 6) != 60) return true;
  int minute = number_at(time, 0) * 60 + number_at(time, 3);
  if (const char zone = time[time.size() - 6]; zone == '+' || zone == '-') {
    const int offset = number_at(time, time.size() - 5) * 60 + number_at(time, time.size() - 2);
    minute += zone == '+' ? -offset : offset;
  }
  return (minute + kDay) % kDay == kDay - 1;
}

/// RFC 3986, and with `more` RFC 3987's characters beside its own. What stands in the brackets of a host is
/// not looked at.
std::string uri(bool relative, const std::string& more) {
  const std::string other = "%[0-9A-Fa-f]{2}";
  const std::string plain = "A-Za-z0-9._~!$&'()*+,;=" + more;
  const auto some = [&](const std::string& set) { return "([" + set + "-]|" + other + ")"; };
  const std::string segment = some(plain + ":@");
  const std::string slashed = "(/" + segment + "*)*";
  const std::string host = "(\\[[0-9A-Za-z:._~!$&'()*+,;=-]+\\]|" + some(plain) + "*)";
  const std::string authority = "//(" + some(plain + ":") + "*@)?" + host + "(:[0-9]*)?" + slashed;
  const std::string rooted = "/(" + segment + "+" + slashed + ")?";
  const std::string tail = "(\\?" + some(plain + ":@/?") + "*)?(#" + some(plain + ":@/?") + "*)?";
  const std::string absolute =
      "[A-Za-z][A-Za-z0-9+.-]*:(" + authority + "|" + rooted + "|" + segment + "+" + slashed + ")?" + tail;
  if (!relative) return absolute;
  return absolute + "|(" + authority + "|" + rooted + "|" + some(plain + "@") + "+" + slashed + ")?" + tail;
}

std::string with_any_digits(std::string pattern) {
  constexpr std::string_view kSome = "{1,9}";
  for (size_t at = pattern.find(kSome); at != std::string::npos; at = pattern.find(kSome, at))
    pattern.replace(at, kSome.size(), "+");
  return pattern;
}

/// What the standards take of formats of which format_pattern() has a part.
const std::map<std::string, std::string, std::less<>>& whole_patterns() {
  static const std::map<std::string, std::string, std::less<>> known = [] {
    const std::string host = std::string(kWholeLabel) + "(\\." + kWholeLabel + ")*";
    const std::string atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";
    const std::string quoted = "\"([\\x20\\x21\\x23-\\x5B\\x5D-\\x7E]|\\\\[\\x20-\\x7E])*\"";
    const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    const std::string literal = "\\[(" + byte + "(\\." + byte + "){3}|IPv6:[0-9a-fA-F:.]+)\\]";
    const std::string beyond_ascii = "\\u00A0-\\uD7FF\\uE000-\\uFFFD\\U00010000-\\U0010FFFD";
    return std::map<std::string, std::string, std::less<>>{
        {"time", kWholeTime},
        {"date-time", std::string(format_pattern("date")) + "[Tt]" + kWholeTime},
        {"duration", with_any_digits(format_pattern("duration"))},
        {"email", "(" + atom + "(\\." + atom + ")*|" + quoted + ")@(" + host + "|" + literal + ")"},
        {"hostname", host},
        {"json-pointer", kPointer},
        {"relative-json-pointer", std::string("(0|[1-9][0-9]*)(#|") + kPointer + ")"},
        {"uri", uri(false, "")},
        {"uri-reference", uri(true, "")},
        {"iri", uri(false, beyond_ascii)},
        {"iri-reference", uri(true, beyond_ascii)},
    };
  }();
  return known;
}

bool is_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return text.find('\0') == std::string::npos && inet_pton(family, text.c_str(), bytes.data()) == 1;
}

}  // namespace

FormatCheck check_format(const std::string& format, const std::string& text,
                         const std::function<bool(const std::string& pattern)>& matches) {
  if (matches(format_pattern(format))) return FormatCheck::valid;
  const auto either = [](bool valid) { return valid ? FormatCheck::valid : FormatCheck::invalid; };
  if (format == "ipv6" || format == "ipvanyaddress") return either(is_address(AF_INET6, text));
  if (format == "regex") return FormatCheck::unclear;
  if (format.starts_with("idn-")) {
    const bool ascii =
        std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
    return ascii ? check_format(format.substr(4), text, matches) : FormatCheck::unclear;
  }
  const auto whole = whole_patterns().find(format);
  if (whole == whole_patterns().end()) return FormatCheck::invalid;
  if (!matches(whole->second)) return FormatCheck::invalid;
  if (format == "time") return either(is_time_of_day(text));
  if (format == "date-time") return either(is_time_of_day(std::string_view(text).substr(11)));
  return FormatCheck::valid;
}

}  // namespace qwench
