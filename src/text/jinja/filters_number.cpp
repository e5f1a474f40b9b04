#include <charconv>
#include <cmath>
#include <limits>

#include "core/utf8.h"
#include "text/jinja/builtins.h"
#include "text/jinja/number_format.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

/// The text without white space around it, its decimal digits as ASCII; nullopt when other characters are in
/// it.
std::optional<std::string> ascii_number(std::string_view text) {
  const ByteSpan kept = strip(text, nullptr, true, true);
  std::string out;
  for (size_t at = kept.begin; at < kept.end;) {
    const Utf8Char c = decode_utf8(text.substr(at));
    at += static_cast<size_t>(c.length);
    const int digit = decimal_value(c.code);
    if (digit >= 0)
      out += static_cast<char>('0' + digit);
    else if (c.code < 0x80)
      out += static_cast<char>(c.code);
    else
      return std::nullopt;
  }
  return out;
}

/// Removes underscores that stand between digits; false when one stands elsewhere.
bool remove_underscores(std::string& digits) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] != '_') {
      out += digits[i];
      continue;
    }
    const auto alnum = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (i == 0 || i + 1 == digits.size() || !alnum(digits[i - 1]) || !alnum(digits[i + 1])) return false;
  }
  digits = std::move(out);
  return true;
}

/// int(text, base)
std::optional<BigInt> parse_int(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  auto number = ascii_number(text);
  if (!number || number->empty()) return std::nullopt;
  std::string digits = *number;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.erase(0, 1);
  const auto prefix_base = [&]() -> int64_t {
    if (digits.size() < 2 || digits[0] != '0') return 0;
    switch (digits[1]) {
      case 'x':
      case 'X':
        return 16;
      case 'o':
      case 'O':
        return 8;
      case 'b':
      case 'B':
        return 2;
      default:
        return 0;
    }
  }();
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    digits.erase(0, 2);
    if (!digits.empty() && digits[0] == '_') digits.erase(0, 1);
    base = prefix_base;
  } else if (base == 0) {
    const bool zeros = digits.find_first_not_of("0_") == std::string::npos;
    if (!digits.empty() && digits[0] == '0' && !zeros) return std::nullopt;
    base = 10;
  }
  if (!remove_underscores(digits) || digits.empty() || digits.size() > 4300) return std::nullopt;
  const auto value = BigInt::parse(digits, static_cast<int>(base));
  if (!value) return std::nullopt;
  return negative ? -*value : *value;
}

Value int_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("int", arguments, {"value", "default", "base"}, 1);
  const Value& value = bound[0];
  const Value otherwise = bound[1].is_missing() ? Value::integer(0) : bound[1];
  if (value.is_undefined()) fail_undefined(value);
  if (value.is(Type::boolean)) return Value::integer(value.as_integer());
  if (value.is_integer()) return value;
  double real = 0;
  if (value.is_string()) {
    const std::string_view text = value.as<String>().text.view();
    rt.work(text.size() * 8);
    // A base that is no integer fails like a text that is no number.
    const int64_t base =
        bound[2].is_missing() ? 10 : (bound[2].is_small_integer() ? bound[2].as_integer() : -1);
    if (const auto parsed = parse_int(text, base)) return rt.heap.integer(*parsed);
    const auto parsed = parse_real(rt, text);
    if (!parsed || !std::isfinite(*parsed)) return otherwise;
    real = *parsed;
  } else if (value.is(Type::real)) {
    real = value.as_real();
    if (std::isinf(real)) fail("cannot convert float infinity to integer");
    if (std::isnan(real)) return otherwise;
  } else {
    return otherwise;
  }
  return rt.heap.integer(BigInt::truncate(real));
}

Value float_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("float", arguments, {"value", "default"}, 1);
  const Value& value = bound[0];
  if (value.is_undefined()) fail_undefined(value);
  if (value.is_number()) return Value::real(to_double(value));
  if (value.is_string()) {
    rt.work(value.as<String>().text.size() * 8);
    if (const auto parsed = parse_real(rt, value.as<String>().text.view())) return Value::real(*parsed);
  }
  return bound[1].is_missing() ? Value::real(0.0) : bound[1];
}

Value abs_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind_positional("abs", arguments, 1, 1)[0];
  if (!value.is_number()) fail("bad operand type for abs(): '" + type_name(value) + "'");
  if (value.is(Type::real)) return Value::real(std::fabs(value.as_real()));
  const BigInt number = to_bigint(value);
  return rt.heap.integer(number.negative() ? -number : number);
}

/// Python's round(real, digits): correct as decimal text, halves to even.
double round_real(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 322) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) {
    const std::string text = format_magnitude(value, 'f', static_cast<int>(digits), false);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    return std::copysign(rounded, value);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  const double scaled = std::nearbyint(value / unit) * unit;
  if (std::isinf(scaled)) fail("rounded value too large to represent");
  return scaled;
}

/// Python's round(integer, digits) for negative digits: to tens, hundreds, ..., halves to even.
Value round_integer(Runtime& rt, const BigInt& value, int64_t digits) {
  if (digits < -4300) return Value::integer(0);
  const BigInt unit = BigInt::power(10, static_cast<uint64_t>(-digits));
  BigInt quotient;
  BigInt rest;
  BigInt::divide(value, unit, quotient, rest);
  const int half = compare(rest + rest, unit);
  if (half > 0 || (half == 0 && quotient.odd())) quotient = quotient + 1;
  return rt.heap.integer(quotient * unit);
}

Value round_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("round", arguments, {"value", "precision", "method"}, 1);
  const Value& value = bound[0];
  const std::string method = bound[2].is_missing() ? "common" : to_text(rt, bound[2]).str();
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  if (method != "common") {
    const Value precision = bound[1].is_missing() ? Value::integer(0) : bound[1];
    const Value scale = binary(rt, Operator::power, Value::integer(10), precision);
    const Value scaled = binary(rt, Operator::multiply, value, scale);
    if (!scaled.is_number()) fail_type(method, "a number", scaled);
    Value whole = scaled;
    if (scaled.is(Type::real)) {
      if (!std::isfinite(scaled.as_real())) fail("cannot convert float infinity or NaN to integer");
      whole = rt.heap.integer(
          BigInt::truncate(method == "ceil" ? std::ceil(scaled.as_real()) : std::floor(scaled.as_real())));
    }
    return binary(rt, Operator::divide, whole, scale);
  }
  if (!value.is_number()) fail("type " + type_name(value) + " doesn't define __round__ method");
  const bool none = bound[1].is_none();
  const int64_t digits = bound[1].is_missing() || none ? 0 : to_index("round", bound[1]);
  if (value.is_integer()) {
    if (digits >= 0) return rt.heap.integer(to_bigint(value));
    return round_integer(rt, to_bigint(value), digits);
  }
  const double rounded = round_real(value.as_real(), digits);
  if (!none) return Value::real(rounded);
  if (!std::isfinite(rounded)) fail("cannot convert float infinity or NaN to integer");
  return rt.heap.integer(BigInt::truncate(rounded));
}

}  // namespace

std::optional<double> parse_real(Runtime& rt, std::string_view text) {
  rt.work(text.size() * 8);
  auto number = ascii_number(text);
  if (!number || !remove_underscores(*number) || number->empty()) return std::nullopt;
  std::string_view digits = *number;
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.remove_prefix(1);
  std::string lower;
  for (const char c : digits) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (lower.empty() || !((lower[0] >= '0' && lower[0] <= '9') || lower[0] == '.')) return std::nullopt;
    const auto [end, status] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
    if (end != lower.data() + lower.size() || status == std::errc::invalid_argument) return std::nullopt;
    if (status == std::errc::result_out_of_range) {
      const size_t exponent = lower.find('e');
      const bool tiny = exponent != std::string::npos && lower[exponent + 1] == '-';
      value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    }
  }
  return negative ? -value : value;
}

void add_number_filters(FilterTable& table) {
  table["int"] = int_filter;
  table["float"] = float_filter;
  table["abs"] = abs_filter;
  table["round"] = round_filter;
}

}  // namespace qwench::jinja
