#include <fmt/format.h>

#include "text/jinja/builtins.h"
#include "text/jinja/callables.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"

namespace qwench::jinja {

Value Interpreter::evaluate(const Expr& expr, const Frame& frame) {
  rt_.step();
  switch (expr.kind) {
    case ExprKind::constant:
      return static_cast<const ConstantExpr&>(expr).value;
    case ExprKind::name:
      return evaluate_name(static_cast<const NameExpr&>(expr), frame);
    default:
      break;
  }
  const Runtime::Nesting nesting(rt_);
  switch (expr.kind) {
    case ExprKind::tuple:
    case ExprKind::list:
      return evaluate_sequence(static_cast<const SequenceExpr&>(expr), frame);
    case ExprKind::dict:
      return evaluate_dict(static_cast<const DictExpr&>(expr), frame);
    case ExprKind::unary: {
      const auto& node = static_cast<const UnaryExpr&>(expr);
      const Value operand = evaluate(*node.operand, frame);
      rt_.position = expr.position;
      return unary(rt_, node.op, operand);
    }
    case ExprKind::binary: {
      const auto& node = static_cast<const BinaryExpr&>(expr);
      const Value left = evaluate(*node.left, frame);
      const Value right = evaluate(*node.right, frame);
      rt_.position = expr.position;
      return binary(rt_, node.op, left, right);
    }
    case ExprKind::logical:
      return evaluate_logical(static_cast<const BinaryExpr&>(expr), frame);
    case ExprKind::compare:
      return evaluate_compare(static_cast<const CompareExpr&>(expr), frame);
    case ExprKind::concat: {
      std::vector<Value> items;
      for (const ExprPtr& item : static_cast<const ConcatExpr&>(expr).items)
        items.push_back(evaluate(*item, frame));
      rt_.position = expr.position;
      return concatenate(rt_, items);
    }
    case ExprKind::conditional:
      return evaluate_conditional(static_cast<const ConditionalExpr&>(expr), frame);
    case ExprKind::attribute: {
      const auto& node = static_cast<const AttributeExpr&>(expr);
      const Value object = evaluate(*node.object, frame);
      rt_.position = expr.position;
      return get_attribute(rt_, object, node.name);
    }
    case ExprKind::item: {
      const auto& node = static_cast<const ItemExpr&>(expr);
      const Value object = evaluate(*node.object, frame);
      const Value key = evaluate(*node.key, frame);
      rt_.position = expr.position;
      return get_item(rt_, object, key);
    }
    case ExprKind::slice:
      return evaluate_slice(static_cast<const SliceExpr&>(expr), frame);
    case ExprKind::call:
      return evaluate_call(static_cast<const CallExpr&>(expr), frame);
    case ExprKind::filter:
      return evaluate_filter(static_cast<const FilterExpr&>(expr), frame);
    default:
      return evaluate_test(static_cast<const FilterExpr&>(expr), frame);
  }
}

Value Interpreter::evaluate_name(const NameExpr& expr, const Frame& frame) {
  const Value& value = frame.variable(expr.variable);
  if (!value.is_missing()) return value;
  rt_.position = expr.position;
  return rt_.heap.undefined("'" + expr.name + "' is undefined");
}

Value Interpreter::evaluate_sequence(const SequenceExpr& expr, const Frame& frame) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& item : expr.items) items.push_back(evaluate(*item, frame));
  return expr.kind == ExprKind::list ? rt_.heap.list(std::move(items)) : rt_.heap.tuple(std::move(items));
}

Value Interpreter::evaluate_dict(const DictExpr& expr, const Frame& frame) {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key_expr, value_expr] : expr.items) {
    Value key = evaluate(*key_expr, frame);
    Value value = evaluate(*value_expr, frame);
    rt_.position = expr.position;
    dict->set(std::move(key), std::move(value));
  }
  return rt_.heap.dict(std::move(dict));
}

Value Interpreter::evaluate_logical(const BinaryExpr& expr, const Frame& frame) {
  Value left = evaluate(*expr.left, frame);
  if (truthy(rt_, left) == (expr.op == Operator::logical_or)) return left;
  return evaluate(*expr.right, frame);
}

Value Interpreter::evaluate_compare(const CompareExpr& expr, const Frame& frame) {
  Value left = evaluate(*expr.first, frame);
  bool input = false;
  for (const auto& [op, right_expr] : expr.rest) {
    Value right = evaluate(*right_expr, frame);
    rt_.position = expr.position;
    input = input || touches_input(left) || touches_input(right);
    if (!compare(rt_, op, left, right)) return Value::boolean(false).mark_input(input);
    left = std::move(right);
  }
  return Value::boolean(true).mark_input(input);
}

Value Interpreter::evaluate_conditional(const ConditionalExpr& expr, const Frame& frame) {
  if (truthy(rt_, evaluate(*expr.condition, frame))) return evaluate(*expr.yes, frame);
  if (expr.no != nullptr) return evaluate(*expr.no, frame);
  return rt_.heap.undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was defined.",
                  expr.position.line));
}

Value Interpreter::evaluate_slice(const SliceExpr& expr, const Frame& frame) {
  const auto bound = [&](const ExprPtr& each) {
    return each == nullptr ? Value::none() : evaluate(*each, frame);
  };
  const Value object = evaluate(*expr.object, frame);
  const Value start = bound(expr.start);
  const Value stop = bound(expr.stop);
  const Value step = bound(expr.step);
  rt_.position = expr.position;
  return slice(rt_, object, start, stop, step);
}

void Interpreter::evaluate_arguments(const CallArguments& from, Arguments& to, const Frame& frame) {
  for (const ExprPtr& each : from.positional) to.positional.push_back(evaluate(*each, frame));
  for (const auto& [name, each] : from.named) to.named.emplace_back(name, evaluate(*each, frame));
  if (from.spread_positional != nullptr) {
    const Value spread = evaluate(*from.spread_positional, frame);
    rt_.position = from.spread_positional->position;
    for (Value& each : to_vector(rt_, spread)) to.positional.push_back(std::move(each));
  }
  if (from.spread_named == nullptr) return;
  const Value spread = evaluate(*from.spread_named, frame);
  rt_.position = from.spread_named->position;
  if (spread.is_undefined()) fail_undefined(spread);
  if (!spread.is(Type::dict)) fail("argument after ** must be a mapping, not " + type_name(spread));
  for (const auto& [key, value] : spread.as<Dict>().entries()) {
    const std::string& name = to_string_argument("keywords", key).text.str();
    for (const auto& [given, unused] : from.named) {
      if (given == name) fail("got multiple values for keyword argument '" + name + "'");
    }
    to.named.emplace_back(name, value);
  }
}

Value Interpreter::evaluate_call(const CallExpr& expr, const Frame& frame) {
  return call_with(expr, frame, nullptr);
}

Value Interpreter::call_with(const CallExpr& expr, const Frame& frame, const Value* caller) {
  Arguments arguments;
  Value callee;
  if (expr.callee->kind == ExprKind::attribute) {
    // The method of a string or container is called without making a function of it first.
    const auto& attribute = static_cast<const AttributeExpr&>(*expr.callee);
    const Value object = evaluate(*attribute.object, frame);
    rt_.position = attribute.position;
    const bool direct = (object.is_string() || object.is(Type::dict) || object.is_sequence()) &&
                        !attribute.name.starts_with('_') && !is_mutating(object, attribute.name);
    if (const NativeFunction method = direct ? find_method(object, attribute.name) : nullptr) {
      evaluate_arguments(expr.arguments, arguments, frame);
      if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
      rt_.position = expr.position;
      bool input = touches_input(object);
      for (const Value& each : arguments.positional) input = input || touches_input(each);
      rt_.step();
      charge_operands(rt_, object, arguments);
      Value result = method(rt_, object, arguments);
      return input && !result.is_string() ? result.mark_input() : result;
    }
    callee = get_attribute(rt_, object, attribute.name);
  } else {
    callee = evaluate(*expr.callee, frame);
  }
  evaluate_arguments(expr.arguments, arguments, frame);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  rt_.position = expr.position;
  Value result = call(rt_, callee, std::move(arguments));
  return result;
}

Value Interpreter::evaluate_filter(const FilterExpr& expr, const Frame& frame) {
  if (expr.checked_late) fail(fmt::format("No filter named '{}' found.", expr.name));
  Arguments arguments;
  arguments.positional.push_back(expr.operand != nullptr ? evaluate(*expr.operand, frame) : *block_content_);
  evaluate_arguments(expr.arguments, arguments, frame);
  rt_.position = expr.position;
  return call_filter(rt_, expr.filter, arguments);
}

Value Interpreter::evaluate_test(const FilterExpr& expr, const Frame& frame) {
  if (expr.checked_late) fail(fmt::format("No test named '{}' found.", expr.name));
  Arguments arguments;
  arguments.positional.push_back(evaluate(*expr.operand, frame));
  evaluate_arguments(expr.arguments, arguments, frame);
  rt_.position = expr.position;
  const bool input = touches_input(arguments.positional[0]);
  return Value::boolean(call_test(rt_, expr.test, arguments)).mark_input(input);
}

}  // namespace qwench::jinja
