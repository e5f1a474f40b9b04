#pragma once

#include "text/jinja/ast.h"

namespace qwench::jinja {

/// Calls f(const Expr&) for each direct child, in the order in which they are written.
template <typename F>
void for_each_argument(const CallArguments& arguments, F f) {
  for (const ExprPtr& each : arguments.positional) f(*each);
  for (const auto& [name, each] : arguments.named) f(*each);
  if (arguments.spread_positional != nullptr) f(*arguments.spread_positional);
  if (arguments.spread_named != nullptr) f(*arguments.spread_named);
}

template <typename F>
void for_each_child(const Expr& expr, F f) {
  const auto maybe = [&](const ExprPtr& child) {
    if (child != nullptr) f(*child);
  };
  switch (expr.kind) {
    case ExprKind::constant:
    case ExprKind::name:
      return;
    case ExprKind::tuple:
    case ExprKind::list:
      for (const ExprPtr& item : static_cast<const SequenceExpr&>(expr).items) f(*item);
      return;
    case ExprKind::dict:
      for (const auto& [key, value] : static_cast<const DictExpr&>(expr).items) {
        f(*key);
        f(*value);
      }
      return;
    case ExprKind::unary:
      return f(*static_cast<const UnaryExpr&>(expr).operand);
    case ExprKind::binary:
    case ExprKind::logical: {
      const auto& binary = static_cast<const BinaryExpr&>(expr);
      f(*binary.left);
      return f(*binary.right);
    }
    case ExprKind::compare: {
      const auto& compare = static_cast<const CompareExpr&>(expr);
      f(*compare.first);
      for (const auto& [op, operand] : compare.rest) f(*operand);
      return;
    }
    case ExprKind::concat:
      for (const ExprPtr& item : static_cast<const ConcatExpr&>(expr).items) f(*item);
      return;
    case ExprKind::conditional: {
      const auto& conditional = static_cast<const ConditionalExpr&>(expr);
      f(*conditional.condition);
      f(*conditional.yes);
      return maybe(conditional.no);
    }
    case ExprKind::attribute:
      return f(*static_cast<const AttributeExpr&>(expr).object);
    case ExprKind::item: {
      const auto& item = static_cast<const ItemExpr&>(expr);
      f(*item.object);
      return f(*item.key);
    }
    case ExprKind::slice: {
      const auto& slice = static_cast<const SliceExpr&>(expr);
      f(*slice.object);
      maybe(slice.start);
      maybe(slice.stop);
      return maybe(slice.step);
    }
    case ExprKind::call: {
      const auto& call = static_cast<const CallExpr&>(expr);
      f(*call.callee);
      return for_each_argument(call.arguments, f);
    }
    case ExprKind::filter:
    case ExprKind::test: {
      const auto& filter = static_cast<const FilterExpr&>(expr);
      maybe(filter.operand);
      return for_each_argument(filter.arguments, f);
    }
  }
}

}  // namespace qwench::jinja
