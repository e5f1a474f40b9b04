#include <cmath>

#include "text/jinja/operations.h"
#include "text/jinja/search.h"
#include "text/jinja/things.h"

namespace qwench::jinja {
namespace {

const char* order_symbol(Operator op) {
  switch (op) {
    case Operator::less:
      return "<";
    case Operator::less_equal:
      return "<=";
    case Operator::greater:
      return ">";
    default:
      return ">=";
  }
}

bool holds(Operator op, int order) {
  switch (op) {
    case Operator::less:
      return order < 0;
    case Operator::less_equal:
      return order <= 0;
    case Operator::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool is_nan(const Value& value) { return value.is(Type::real) && std::isnan(value.as_real()); }

bool is_same_or_equal(Runtime& rt, const Value& a, const Value& b) {
  return (a.object() != nullptr && a.same_object(b)) || equals(rt, a, b);
}

bool compare_sequences(Runtime& rt, Operator op, const Sequence& a, const Sequence& b) {
  const Runtime::Nesting nesting(rt);
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    if (!is_same_or_equal(rt, a.items[i], b.items[i])) return compare(rt, op, a.items[i], b.items[i]);
  }
  return holds(op, a.items.size() == b.items.size() ? 0 : (a.items.size() < b.items.size() ? -1 : 1));
}

}  // namespace

bool truthy(Runtime& rt, const Value& value) {
  switch (value.type()) {
    case Type::missing:
    case Type::undefined:
    case Type::none:
      return false;
    case Type::boolean:
    case Type::integer:
      return value.as_integer() != 0;
    case Type::big_integer:
      return true;
    case Type::real:
      return value.as_real() != 0;
    case Type::string:
      return !value.as<String>().text.empty();
    case Type::list:
    case Type::tuple:
      return !value.as<Sequence>().items.empty();
    case Type::dict:
      return value.as<Dict>().size() != 0;
    case Type::thing:
      return value.as<Thing>().truthy(rt);
  }
  return false;
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_small_integer() && b.is_small_integer()) {
    return a.as_integer() < b.as_integer() ? -1 : (a.as_integer() > b.as_integer() ? 1 : 0);
  }
  if (a.is_integer() && b.is_integer()) return compare(to_bigint(a), to_bigint(b));
  if (a.is(Type::real) && b.is(Type::real))
    return a.as_real() < b.as_real() ? -1 : (a.as_real() > b.as_real() ? 1 : 0);
  // An integer and a real compare exactly, as integers, with the real's fraction as the tie-break.
  if (a.is(Type::real)) return -compare_numbers(b, a);
  const double real = b.as_real();
  if (std::isinf(real)) return real > 0 ? -1 : 1;
  const int whole = compare(to_bigint(a), BigInt::truncate(real));
  if (whole != 0) return whole;
  const double fraction = real - std::trunc(real);
  return fraction > 0 ? -1 : (fraction < 0 ? 1 : 0);
}

bool equals(Runtime& rt, const Value& a, const Value& b) {
  rt.step();
  if (a.is_number() && b.is_number()) return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::string: {
      const TrackedText& x = a.as<String>().text;
      const TrackedText& y = b.as<String>().text;
      if (x.size() != y.size()) return false;
      rt.work(x.size() * 4);
      return x.str() == y.str();
    }
    case Type::list:
    case Type::tuple: {
      const auto& x = a.as<Sequence>().items;
      const auto& y = b.as<Sequence>().items;
      if (x.size() != y.size()) return false;
      const Runtime::Nesting nesting(rt);
      for (size_t i = 0; i < x.size(); ++i) {
        if (!is_same_or_equal(rt, x[i], y[i])) return false;
      }
      return true;
    }
    case Type::dict: {
      const Dict& x = a.as<Dict>();
      const Dict& y = b.as<Dict>();
      if (x.size() != y.size()) return false;
      const Runtime::Nesting nesting(rt);
      for (const auto& [key, value] : x.entries()) {
        const Value* other = y.find(key);
        if (other == nullptr || !is_same_or_equal(rt, value, *other)) return false;
      }
      return true;
    }
    case Type::thing:
      return a.object() == b.object() || a.as<Thing>().equals(rt, b.as<Thing>());
    default:
      return true;  // none and undefined
  }
}

bool compare(Runtime& rt, Operator op, const Value& a, const Value& b) {
  if (op == Operator::equal) return equals(rt, a, b);
  if (op == Operator::not_equal) return !equals(rt, a, b);
  if (op == Operator::in) return contains(rt, b, a);
  if (op == Operator::not_in) return !contains(rt, b, a);
  rt.step();
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return !is_nan(a) && !is_nan(b) && holds(op, compare_numbers(a, b));
  if (a.is_string() && b.is_string()) {
    // The order of code points is the order of their UTF-8 bytes.
    rt.work(std::min(a.as<String>().text.size(), b.as<String>().text.size()) * 4);
    return holds(op, a.as<String>().text.view().compare(b.as<String>().text.view()));
  }
  if (a.is_sequence() && a.type() == b.type())
    return compare_sequences(rt, op, a.as<Sequence>(), b.as<Sequence>());
  fail(std::string("'") + order_symbol(op) + "' not supported between instances of '" + type_name(a) +
       "' and '" + type_name(b) + "'");
}

bool less(Runtime& rt, const Value& a, const Value& b) { return compare(rt, Operator::less, a, b); }

bool contains(Runtime& rt, const Value& container, const Value& item) {
  switch (container.type()) {
    case Type::string: {
      if (!item.is_string()) fail("'in <string>' requires string as left operand, not " + type_name(item));
      return find_text(rt, container.as<String>().text.view(), item.as<String>().text.view()) !=
             std::string_view::npos;
    }
    case Type::dict:
      return container.as<Dict>().find(item) != nullptr;
    case Type::list:
    case Type::tuple: {
      for (const Value& each : container.as<Sequence>().items) {
        if (is_same_or_equal(rt, each, item)) return true;
      }
      return false;
    }
    default:
      break;
  }
  if (container.is(Type::thing)) {
    if (const auto direct = contains_directly(rt, container.as<Thing>(), item)) return *direct;
  }
  if (!is_iterable(rt, container)) fail("argument of type '" + type_name(container) + "' is not iterable");
  const IteratorPtr iterator = iterate(rt, container);
  for (Value each; iterator->next(rt, each);) {
    if (is_same_or_equal(rt, each, item)) return true;
  }
  return false;
}

bool is_same(const Value& a, const Value& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Type::missing:
    case Type::none:
      return true;
    case Type::boolean:
    case Type::integer:
      return a.as_integer() == b.as_integer();  // small integers are shared in Python
    case Type::real:
      return false;
    case Type::string:
      return a.object() == b.object() || a.as<String>().text.str() == b.as<String>().text.str();
    default:
      return a.object() == b.object();
  }
}

}  // namespace qwench::jinja
