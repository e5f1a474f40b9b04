#include <cmath>

#include "text/jinja/operations.h"
#include "text/jinja/printf_format.h"

namespace qwench::jinja {
namespace {

const char* symbol(Operator op) {
  switch (op) {
    case Operator::add:
      return "+";
    case Operator::subtract:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    default:
      return "** or pow()";
  }
}

[[noreturn]] void unsupported(Operator op, const Value& a, const Value& b) {
  fail(std::string("unsupported operand type(s) for ") + symbol(op) + ": '" + type_name(a) + "' and '" +
       type_name(b) + "'");
}

/// Python's float // and %: the remainder has the sign of the divisor.
void divide_reals(double a, double b, double& quotient, double& remainder) {
  remainder = std::fmod(a, b);
  double whole = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      whole -= 1.0;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (whole == 0) {
    quotient = std::copysign(0.0, a / b);
    return;
  }
  quotient = std::floor(whole);
  if (whole - quotient > 0.5) quotient += 1.0;
}

Value real_arithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return Value::real(a + b);
    case Operator::subtract:
      return Value::real(a - b);
    case Operator::multiply:
      return Value::real(a * b);
    case Operator::divide:
      if (b == 0) fail("float division by zero");
      return Value::real(a / b);
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == 0) fail(op == Operator::modulo ? "float modulo" : "float floor division by zero");
      double quotient = 0;
      double remainder = 0;
      divide_reals(a, b, quotient, remainder);
      return Value::real(op == Operator::modulo ? remainder : quotient);
    }
    default:
      break;
  }
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::trunc(b) != b)
    fail("complex numbers are not supported");
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
    fail("(34, 'Numerical result out of range')");
  return Value::real(power);
}

Value small_arithmetic(Operator op, int64_t a, int64_t b, bool& overflow) {
  int64_t result = 0;
  switch (op) {
    case Operator::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == -1) {
        overflow = op == Operator::floor_divide && __builtin_sub_overflow(int64_t{0}, a, &result);
        break;
      }
      int64_t quotient = a / b;
      int64_t remainder = a % b;
      if (remainder != 0 && (remainder < 0) != (b < 0)) {
        --quotient;
        remainder += b;
      }
      result = op == Operator::modulo ? remainder : quotient;
      break;
    }
    default:
      overflow = true;
  }
  return Value::integer(result);
}

/// The quotient of the exact integers, rounded once where both have 53 bits, else by way of long double.
double divide_small(int64_t a, int64_t b) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (a >= -kExact && a <= kExact && b >= -kExact && b <= kExact)
    return static_cast<double>(a) / static_cast<double>(b);
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

Value integer_arithmetic(Runtime& rt, Operator op, const Value& a, const Value& b) {
  const bool zero = b.is_small_integer() && b.as_integer() == 0;
  if (op == Operator::divide) {
    if (zero) fail("division by zero");
    if (a.is_small_integer() && b.is_small_integer())
      return Value::real(divide_small(a.as_integer(), b.as_integer()));
    return Value::real(to_double(a) / to_double(b));
  }
  if (zero && (op == Operator::floor_divide || op == Operator::modulo)) {
    fail(op == Operator::modulo ? "integer modulo by zero" : "integer division or modulo by zero");
  }
  if (op == Operator::power &&
      (b.is(Type::big_integer) ? b.as<BigInteger>().value.negative() : b.as_integer() < 0)) {
    return real_arithmetic(op, to_double(a), to_double(b));
  }
  if (a.is_small_integer() && b.is_small_integer()) {
    bool overflow = false;
    const Value result = small_arithmetic(op, a.as_integer(), b.as_integer(), overflow);
    if (!overflow) return result;
  }
  const BigInt x = to_bigint(a);
  const BigInt y = to_bigint(b);
  rt.step(x.bits() * y.bits() / 4096);
  BigInt quotient;
  BigInt remainder;
  switch (op) {
    case Operator::add:
      return rt.heap.integer(x + y);
    case Operator::subtract:
      return rt.heap.integer(x - y);
    case Operator::multiply:
      return rt.heap.integer(x * y);
    case Operator::floor_divide:
      BigInt::divide(x, y, quotient, remainder);
      return rt.heap.integer(quotient);
    case Operator::modulo:
      BigInt::divide(x, y, quotient, remainder);
      return rt.heap.integer(remainder);
    default:
      break;
  }
  const auto exponent = y.to_int64();
  if (!exponent) {
    if (x.zero() || compare(x, 1) == 0) return a;
    if (compare(x, -1) == 0) return Value::integer(y.odd() ? -1 : 1);
    fail(TemplateErrorKind::limit, "an integer grew beyond 32768 bits");
  }
  rt.step(1000);
  return rt.heap.integer(BigInt::power(x, static_cast<uint64_t>(*exponent)));
}

Value repeat(Runtime& rt, const Value& sequence, const Value& times) {
  if (times.is(Type::big_integer)) fail("cannot fit 'int' into an index-sized integer");
  const int64_t count = std::max<int64_t>(0, to_index("repetition", times));
  if (sequence.is_string()) {
    const String& string = sequence.as<String>();
    const size_t size = string.text.size();
    if (size != 0 && static_cast<uint64_t>(count) > rt.limits().max_output / size)
      rt.check_size(rt.limits().max_output + 1);
    TrackedText out;
    if (size != 0) {
      rt.work(size * static_cast<size_t>(count));
      out.reserve(size * static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i) out.append(string.text);
    }
    return rt.heap.string(std::move(out), string.markup);
  }
  const auto& items = sequence.as<Sequence>().items;
  std::vector<Value> out;
  if (!items.empty()) {
    if (static_cast<uint64_t>(count) > (uint64_t{1} << 40) / items.size()) rt.step(rt.limits().max_steps);
    const size_t total = items.size() * static_cast<size_t>(count);
    rt.step(total);
    rt.heap.check(total * sizeof(Value));
    out.reserve(total);
    for (int64_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  Value result = sequence.is(Type::list) ? rt.heap.list(std::move(out)) : rt.heap.tuple(std::move(out));
  return result.mark_input(sequence.from_input());
}

Value add_strings(Runtime& rt, const Value& a, const Value& b) {
  const String& x = a.as<String>();
  const String& y = b.as<String>();
  const bool markup = x.markup || y.markup;
  TrackedText out = markup ? escape_html(rt, a) : x.text;
  rt.check_size(out.size() + y.text.size());
  out.append(markup ? escape_html(rt, b) : y.text);
  rt.work(out.size());
  return rt.heap.string(std::move(out), markup);
}

Value add_sequences(Runtime& rt, const Value& a, const Value& b) {
  const auto& x = a.as<Sequence>().items;
  const auto& y = b.as<Sequence>().items;
  rt.step(x.size() + y.size());
  rt.heap.check((x.size() + y.size()) * sizeof(Value));
  std::vector<Value> out;
  out.reserve(x.size() + y.size());
  out.insert(out.end(), x.begin(), x.end());
  out.insert(out.end(), y.begin(), y.end());
  return a.is(Type::list) ? rt.heap.list(std::move(out)) : rt.heap.tuple(std::move(out));
}

}  // namespace

BigInt to_bigint(const Value& integer) {
  return integer.is(Type::big_integer) ? integer.as<BigInteger>().value : BigInt(integer.as_integer());
}

double to_double(const Value& number) {
  if (number.is(Type::real)) return number.as_real();
  if (number.is_small_integer()) return static_cast<double>(number.as_integer());
  const double value = number.as<BigInteger>().value.to_double();
  if (std::isinf(value)) fail("int too large to convert to float");
  return value;
}

Value binary(Runtime& rt, Operator op, const Value& a, const Value& b) {
  rt.step();
  if (a.is_number() && b.is_number()) {
    const bool real = a.is(Type::real) || b.is(Type::real);
    Value result = real ? real_arithmetic(op, to_double(a), to_double(b)) : integer_arithmetic(rt, op, a, b);
    return result.mark_input(a.from_input() || b.from_input());
  }
  if (a.is_string() && op == Operator::modulo) return format_printf(rt, a, b);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (op == Operator::add) {
    if (a.is_string() && b.is_string()) return add_strings(rt, a, b);
    if (is_markup(a) || is_markup(b)) unsupported(op, a, b);
    if (a.is_sequence() && a.type() == b.type()) {
      Value result = add_sequences(rt, a, b);
      return result.mark_input(a.from_input() || b.from_input());
    }
    if (a.is_string()) fail("can only concatenate str (not \"" + type_name(b) + "\") to str");
    if (a.is_sequence())
      fail("can only concatenate " + type_name(a) + " (not \"" + type_name(b) + "\") to " + type_name(a));
  }
  if (op == Operator::multiply) {
    const bool left = a.is_string() || a.is_sequence();
    const bool right = b.is_string() || b.is_sequence();
    if (left && b.is_integer()) return repeat(rt, a, b);
    if (right && a.is_integer()) return repeat(rt, b, a);
    if (left || right) fail("can't multiply sequence by non-int of type '" + type_name(left ? b : a) + "'");
  }
  unsupported(op, a, b);
}

Value unary(Runtime& rt, Operator op, const Value& a) {
  rt.step();
  if (op == Operator::logical_not) return Value::boolean(!truthy(rt, a)).mark_input(a.from_input());
  if (a.is_undefined()) fail_undefined(a);
  Value result;
  if (a.is(Type::real)) {
    result = Value::real(op == Operator::negative ? -a.as_real() : a.as_real());
  } else if (a.is_integer()) {
    const BigInt value = to_bigint(a);
    result = rt.heap.integer(op == Operator::negative ? -value : value);
  } else {
    fail(std::string("bad operand type for unary ") + (op == Operator::negative ? "-" : "+") + ": '" +
         type_name(a) + "'");
  }
  return result.mark_input(a.from_input());
}

Value concatenate(Runtime& rt, const std::vector<Value>& items) {
  bool markup = false;
  if (rt.autoescape) {
    for (const Value& item : items) markup = markup || is_markup(item);
  }
  TrackedText out;
  TrackedText storage;
  for (const Value& item : items) {
    if (markup) {
      out.append(escape_html(rt, item));
    } else {
      out.append(text_of(rt, item, storage));
    }
    rt.check_size(out.size());
  }
  rt.work(out.size());
  return rt.heap.string(std::move(out), markup);
}

}  // namespace qwench::jinja
