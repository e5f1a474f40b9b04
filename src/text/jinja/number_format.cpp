#include "text/jinja/number_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

constexpr int kMaxPrecision = 100000;

std::string to_chars(double value, std::chars_format format, int precision) {
  std::string buffer(static_cast<size_t>(precision) + 400, '\0');
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
  buffer.resize(static_cast<size_t>(result.ptr - buffer.data()));
  return buffer;
}

/// Drops the zeros at the end of a fraction.
std::string without_zeros(std::string mantissa) {
  if (mantissa.find('.') == std::string::npos) return mantissa;
  mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.back() == '.') mantissa.pop_back();
  return mantissa;
}

/// Style 'g'; the exponent is written from `precision` - `early` on.
std::string general(double value, int precision, bool alternate, int early = 0) {
  const int digits = std::max(precision, 1);
  const std::string scientific = to_chars(value, std::chars_format::scientific, digits - 1);
  const size_t mark = scientific.find('e');
  int exponent = 0;
  const char* first = scientific.data() + mark + (scientific[mark + 1] == '+' ? 2 : 1);
  std::from_chars(first, scientific.data() + scientific.size(), exponent);
  const bool fixed = exponent >= -4 && exponent < digits - early;
  std::string mantissa =
      fixed ? to_chars(value, std::chars_format::fixed, digits - 1 - exponent) : scientific.substr(0, mark);
  if (alternate) {
    if (mantissa.find('.') == std::string::npos) mantissa += '.';
  } else {
    mantissa = without_zeros(std::move(mantissa));
  }
  return fixed ? mantissa : mantissa + scientific.substr(mark);
}

/// Digits in groups from the right, with leading zeros until the whole has at least `width` characters.
std::string group(std::string digits, char separator, size_t every, size_t width) {
  size_t count = digits.size();
  while (count + (count - 1) / every < width) ++count;
  digits.insert(0, count - digits.size(), '0');
  for (size_t at = digits.size(); at > every;) {
    at -= every;
    digits.insert(at, 1, separator);
  }
  return digits;
}

std::string integer_digits(const Value& number, const FormatSpec& spec, std::string& prefix) {
  int base = 10;
  switch (spec.type) {
    case 'b':
      base = 2;
      break;
    case 'o':
      base = 8;
      break;
    case 'x':
    case 'X':
      base = 16;
      break;
    default:
      break;
  }
  BigInt value = to_bigint(number);
  if (value.negative()) value = -value;
  std::string digits = value.to_string(base);
  if (base == 10 && digits.size() > 4300)
    fail("Exceeds the limit (4300 digits) for integer string conversion");
  if (spec.alternate && base != 10) prefix = std::string("0") + spec.type;
  if (spec.type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return digits;
}

std::string real_digits(double value, const FormatSpec& spec) {
  const int precision = static_cast<int>(std::min<int64_t>(spec.precision, kMaxPrecision + 1));
  if (precision > kMaxPrecision) fail("the precision of a number's format is too large");
  switch (spec.type) {
    case '\0': {
      if (!std::isfinite(value)) return format_magnitude(value, 'g', 6, false);
      if (precision < 0) {
        std::string text = real_repr(std::fabs(value));
        if (spec.alternate && text.find('.') == std::string::npos)
          text.insert(std::min(text.find('e'), text.size()), ".");
        return text;
      }
      if (spec.alternate) return general(std::fabs(value), precision, true, 1);
      // Like 'g', but with a digit after the point, so that the exponent begins one power earlier.
      const int digits = std::max(precision, 1);
      std::string text = general(std::fabs(value), digits, spec.alternate);
      if (text.find_first_of(".e") != std::string::npos) return text;
      if (static_cast<int>(text.size()) < digits) return text + ".0";
      text = to_chars(std::fabs(value), std::chars_format::scientific, digits - 1);
      const size_t mark = text.find('e');
      return without_zeros(text.substr(0, mark)) + text.substr(mark);
    }
    case '%':
      return format_magnitude(value * 100, 'f', precision < 0 ? 6 : precision, spec.alternate) + "%";
    default:
      return format_magnitude(value, spec.type == 'n' ? 'g' : spec.type, precision < 0 ? 6 : precision,
                              spec.alternate);
  }
}

}  // namespace

std::string format_magnitude(double value, char style, int precision, bool alternate) {
  const bool upper = style >= 'A' && style <= 'Z';
  std::string text;
  if (std::isnan(value)) {
    text = "nan";
  } else if (std::isinf(value)) {
    text = "inf";
  } else {
    const double magnitude = std::fabs(value);
    switch (upper ? style + 32 : style) {
      case 'e':
        text = to_chars(magnitude, std::chars_format::scientific, precision);
        break;
      case 'f':
        text = to_chars(magnitude, std::chars_format::fixed, precision);
        break;
      default:
        text = general(magnitude, precision, alternate);
        break;
    }
    if (alternate && text.find('.') == std::string::npos) {
      const size_t mark = text.find('e');
      text.insert(mark == std::string::npos ? text.size() : mark, ".");
    }
  }
  if (upper)
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

FormatSpec FormatSpec::parse(std::string_view text) {
  FormatSpec spec;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  size_t at = 0;
  bool fill_given = false;
  if (!text.empty()) {
    const size_t first = static_cast<size_t>(decode_utf8(text).length);
    if (first < text.size() && is_align(text[first])) {
      spec.fill = std::string(text.substr(0, first));
      spec.align = text[first];
      fill_given = true;
      at = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto peek = [&](char c) { return at < text.size() && text[at] == c; };
  const auto number = [&](int64_t& value) {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    if (at == begin) return;
    const auto result = std::from_chars(text.data() + begin, text.data() + at, value);
    if (result.ec != std::errc() || value > INT32_MAX) fail("Too many decimal digits in format string");
  };
  if (peek('+') || peek('-') || peek(' ')) spec.sign = text[at++];
  if (peek('z')) fail("the format option 'z' is not supported");
  if (peek('#')) {
    spec.alternate = true;
    ++at;
  }
  if (peek('0')) {
    if (!fill_given) spec.fill = "0";
    if (!fill_given && spec.align == '\0') spec.align = '0';  // = for numbers, < for strings
    ++at;
  }
  number(spec.width);
  if (peek(',') || peek('_')) {
    spec.grouping = text[at++];
    if (peek(',') || peek('_')) fail("Cannot specify both ',' and '_'.");
  }
  if (peek('.')) {
    ++at;
    number(spec.precision);
    if (spec.precision < 0) fail("Format specifier missing precision");
  }
  if (text.size() - at > 1) fail("Invalid format specifier");
  if (at < text.size()) spec.type = text[at];
  return spec;
}

std::string pad_number(const std::string& sign, const std::string& digits, const FormatSpec& spec) {
  const size_t length = count_code_points(sign) + count_code_points(digits);
  const size_t width = spec.width < 0 ? 0 : static_cast<size_t>(spec.width);
  const size_t missing = width > length ? width - length : 0;
  size_t left = missing;
  if (spec.align == '<') left = 0;
  if (spec.align == '^') left = missing / 2;
  const bool inside = spec.align == '=' || spec.align == '0';
  std::string out;
  const auto fill = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) out += spec.fill;
  };
  if (inside) out += sign;
  fill(left);
  if (!inside) out += sign;
  out += digits;
  fill(missing - left);
  return out;
}

std::string format_number(const Value& number, const FormatSpec& spec) {
  constexpr std::string_view integer_types = "bcdoxXn";
  constexpr std::string_view real_types = "eEfFgGn%";
  const auto unknown = [&] {
    fail(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, type_name(number)));
  };
  const bool fours = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X';
  constexpr std::string_view kGrouped = "defgEG%F";
  if (spec.grouping != '\0' && spec.type != '\0' && kGrouped.find(spec.type) == std::string_view::npos &&
      !(fours && spec.grouping == '_')) {
    fail(fmt::format("Cannot specify '{}' with '{}'.", spec.grouping, spec.type));
  }
  std::string sign;
  std::string digits;
  size_t group_size = 3;
  const bool as_integer =
      number.is_integer() && (spec.type == '\0' || integer_types.find(spec.type) != std::string_view::npos);
  bool negative = false;
  if (as_integer) {
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (spec.type == 'c') {
      if (spec.sign != '\0') fail("Sign not allowed with integer format specifier 'c'");
      if (spec.alternate) fail("Alternate form (#) not allowed with integer format specifier 'c'");
      const auto code = to_bigint(number).to_int64();
      if (!code || *code < 0 || *code > 0x10FFFF) fail("%c arg not in range(0x110000)");
      append_utf8(digits, static_cast<char32_t>(*code));
    } else {
      if (fours) group_size = 4;
      std::string prefix;
      digits = integer_digits(number, spec, prefix);
      negative = to_bigint(number).negative();
      sign = prefix;
    }
  } else {
    if (spec.type != '\0' && real_types.find(spec.type) == std::string_view::npos) unknown();
    const double value = to_double(number);
    negative = std::signbit(value) && !std::isnan(value);
    digits = real_digits(value, spec);
  }
  if (negative)
    sign = "-" + sign;
  else if (spec.sign == '+' || spec.sign == ' ')
    sign = spec.sign + sign;
  if (spec.grouping != '\0') {
    const size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
    const size_t rest = as_integer ? digits.size() : std::min(digits.find_first_not_of("0123456789"), whole);
    const std::string tail = digits.substr(rest);
    const bool zeros = spec.align == '0' || (spec.align == '=' && spec.fill == "0");
    const size_t taken = sign.size() + tail.size();
    const size_t width = zeros && spec.width > 0 && static_cast<size_t>(spec.width) > taken
                             ? static_cast<size_t>(spec.width) - taken
                             : 0;
    if (rest != 0) digits = group(digits.substr(0, rest), spec.grouping, group_size, width) + tail;
  }
  return pad_number(sign, digits, spec);
}

}  // namespace qwench::jinja
