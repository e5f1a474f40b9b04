#include "text/jinja/builtins.h"

#include "text/jinja/things.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

/// A test of one value.
template <bool (*predicate)(Runtime&, const Value&)>
bool of_value(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("test", arguments, {"value"}, 1);
  return predicate(rt, bound[0]);
}

template <Operator op>
bool compares(Runtime& rt, Arguments& arguments) {
  const auto bound = bind_positional("comparison", arguments, 2, 2);
  return compare(rt, op, bound[0], bound[1]);
}

Value remainder(Runtime& rt, const Value& value, const Value& divisor) {
  return binary(rt, Operator::modulo, value, divisor);
}

bool is_odd(Runtime& rt, const Value& v) {
  return equals(rt, remainder(rt, v, Value::integer(2)), Value::integer(1));
}
bool is_even(Runtime& rt, const Value& v) {
  return equals(rt, remainder(rt, v, Value::integer(2)), Value::integer(0));
}

bool is_divisible_by(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("divisibleby", arguments, {"value", "num"}, 2);
  return equals(rt, remainder(rt, bound[0], bound[1]), Value::integer(0));
}

bool is_defined(Runtime&, const Value& v) { return !v.is_undefined(); }
bool is_undefined(Runtime&, const Value& v) { return v.is_undefined(); }
bool is_none(Runtime&, const Value& v) { return v.is_none(); }
bool is_boolean(Runtime&, const Value& v) { return v.is(Type::boolean); }
bool is_false(Runtime&, const Value& v) { return v.is(Type::boolean) && v.as_integer() == 0; }
bool is_true(Runtime&, const Value& v) { return v.is(Type::boolean) && v.as_integer() == 1; }
bool is_integer(Runtime&, const Value& v) { return v.is_integer() && !v.is(Type::boolean); }
bool is_float(Runtime&, const Value& v) { return v.is(Type::real); }
bool is_string(Runtime&, const Value& v) { return v.is_string(); }
bool is_mapping(Runtime&, const Value& v) { return v.is(Type::dict); }
bool is_number(Runtime&, const Value& v) { return v.is_number(); }
bool is_escaped(Runtime&, const Value& v) { return is_markup(v); }
bool is_callable_value(Runtime&, const Value& v) { return is_callable(v); }
bool is_iterable_value(Runtime& rt, const Value& v) { return is_iterable(rt, v); }

bool is_sequence(Runtime&, const Value& v) {
  if (v.is(Type::thing)) return dynamic_cast<Range*>(&v.as<Thing>()) != nullptr;
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Type::dict);
}

template <bool upper>
bool has_case(Runtime& rt, const Value& v) {
  TrackedText storage;
  const TrackedText& text = text_of(rt, v, storage);
  rt.work(text.size() * 8);
  return has_only_case(text.view(), upper);
}

/// Names that cannot be keys fail; others that are no strings are no names.
bool is_filter(Runtime&, const Value& v) {
  hash_value(v);
  return v.is_string() && has_filter(v.as<String>().text.view());
}

bool is_test(Runtime&, const Value& v) {
  hash_value(v);
  return v.is_string() && has_test(v.as<String>().text.view());
}

bool is_same_as(Runtime&, Arguments& arguments) {
  const auto bound = bind("sameas", arguments, {"value", "other"}, 2);
  return is_same(bound[0], bound[1]);
}

bool is_in(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("in", arguments, {"value", "seq"}, 2);
  return contains(rt, bound[1], bound[0]);
}

}  // namespace

TestFunction find_test(std::string_view name) {
  static const TestTable table = {
      {"odd", of_value<is_odd>},
      {"even", of_value<is_even>},
      {"divisibleby", is_divisible_by},
      {"defined", of_value<is_defined>},
      {"undefined", of_value<is_undefined>},
      {"filter", of_value<is_filter>},
      {"test", of_value<is_test>},
      {"none", of_value<is_none>},
      {"boolean", of_value<is_boolean>},
      {"false", of_value<is_false>},
      {"true", of_value<is_true>},
      {"integer", of_value<is_integer>},
      {"float", of_value<is_float>},
      {"lower", of_value<has_case<false>>},
      {"upper", of_value<has_case<true>>},
      {"string", of_value<is_string>},
      {"mapping", of_value<is_mapping>},
      {"number", of_value<is_number>},
      {"sequence", of_value<is_sequence>},
      {"iterable", of_value<is_iterable_value>},
      {"callable", of_value<is_callable_value>},
      {"sameas", is_same_as},
      {"escaped", of_value<is_escaped>},
      {"in", is_in},
      {"==", compares<Operator::equal>},
      {"eq", compares<Operator::equal>},
      {"equalto", compares<Operator::equal>},
      {"!=", compares<Operator::not_equal>},
      {"ne", compares<Operator::not_equal>},
      {">", compares<Operator::greater>},
      {"gt", compares<Operator::greater>},
      {"greaterthan", compares<Operator::greater>},
      {">=", compares<Operator::greater_equal>},
      {"ge", compares<Operator::greater_equal>},
      {"<", compares<Operator::less>},
      {"lt", compares<Operator::less>},
      {"lessthan", compares<Operator::less>},
      {"<=", compares<Operator::less_equal>},
      {"le", compares<Operator::less_equal>},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace qwench::jinja
