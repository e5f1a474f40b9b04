#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "text/jinja/parser.h"

namespace qwench::jinja {
namespace {

Value constant_string(std::string text) {
  return Value(Type::string, std::make_shared<String>(TrackedText::of_template(std::move(text)), false));
}

}  // namespace

ExprPtr Parser::parse_tuple(bool with_conditional, std::string_view end_name, bool parenthesized) {
  const Position where = current().position;
  auto tuple = std::make_unique<SequenceExpr>(ExprKind::tuple, where);
  bool comma = false;
  while (true) {
    if (current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end || at_op(")") ||
        (!end_name.empty() && at_name(end_name))) {
      break;
    }
    tuple->items.push_back(parse_expression(with_conditional));
    tuple->height = std::max(tuple->height, tuple->items.back()->height + 1);
    if (!skip_op(",")) break;
    comma = true;
  }
  if (!comma && !tuple->items.empty()) return std::move(tuple->items[0]);
  if (!comma && !parenthesized) {
    const bool at_end = current().kind == TokenKind::variable_end;
    error(fmt::format("Expected an expression, got '{}'",
                      at_end ? "end of print statement" : "end of statement block"));
  }
  return finish(std::move(tuple), {});
}

ExprPtr Parser::parse_expression(bool with_conditional) {
  return with_conditional ? parse_conditional() : parse_or();
}

ExprPtr Parser::parse_conditional() {
  const Nesting nesting(*this);
  ExprPtr expr = parse_or();
  while (at_name("if")) {
    auto node = std::make_unique<ConditionalExpr>(advance().position);
    node->yes = std::move(expr);
    node->condition = parse_or();
    if (skip_name("else")) node->no = parse_conditional();
    const std::initializer_list<const Expr*> children = {node->yes.get(), node->condition.get(),
                                                         node->no.get()};
    expr = finish(std::move(node), children);
  }
  return expr;
}

ExprPtr Parser::parse_or() {
  ExprPtr left = parse_and();
  while (at_name("or")) {
    const Position where = advance().position;
    ExprPtr right = parse_and();
    const std::initializer_list<const Expr*> children = {left.get(), right.get()};
    left = finish(std::make_unique<BinaryExpr>(ExprKind::logical, Operator::logical_or, std::move(left),
                                               std::move(right), where),
                  children);
  }
  return left;
}

ExprPtr Parser::parse_and() {
  ExprPtr left = parse_not();
  while (at_name("and")) {
    const Position where = advance().position;
    ExprPtr right = parse_not();
    const std::initializer_list<const Expr*> children = {left.get(), right.get()};
    left = finish(std::make_unique<BinaryExpr>(ExprKind::logical, Operator::logical_and, std::move(left),
                                               std::move(right), where),
                  children);
  }
  return left;
}

ExprPtr Parser::parse_not() {
  if (!at_name("not")) return parse_compare();
  const Nesting nesting(*this);
  const Position where = advance().position;
  ExprPtr operand = parse_not();
  const Expr* child = operand.get();
  return finish(std::make_unique<UnaryExpr>(Operator::logical_not, std::move(operand), where), {child});
}

ExprPtr Parser::parse_compare() {
  ExprPtr first = parse_sum();
  std::unique_ptr<CompareExpr> node;
  while (true) {
    const Position where = current().position;
    Operator op;
    if (skip_op("=="))
      op = Operator::equal;
    else if (skip_op("!="))
      op = Operator::not_equal;
    else if (skip_op("<"))
      op = Operator::less;
    else if (skip_op("<="))
      op = Operator::less_equal;
    else if (skip_op(">"))
      op = Operator::greater;
    else if (skip_op(">="))
      op = Operator::greater_equal;
    else if (skip_name("in"))
      op = Operator::in;
    else if (at_name("not") && look().kind == TokenKind::name && look().text == "in") {
      advance();
      advance();
      op = Operator::not_in;
    } else {
      break;
    }
    if (node == nullptr) {
      node = std::make_unique<CompareExpr>(where);
      node->height = first->height + 1;  // NOLINT(bugprone-use-after-move): only before the move
      node->first = std::move(first);
    }
    node->rest.emplace_back(op, parse_sum());
    node->height = std::max(node->height, node->rest.back().second->height + 1);
  }
  return node == nullptr ? std::move(first) : finish(std::move(node), {});
}

ExprPtr Parser::parse_sum() {
  ExprPtr left = parse_concat();
  while (at_op("+") || at_op("-")) {
    const Operator op = at_op("+") ? Operator::add : Operator::subtract;
    const Position where = advance().position;
    ExprPtr right = parse_concat();
    const std::initializer_list<const Expr*> children = {left.get(), right.get()};
    left =
        finish(std::make_unique<BinaryExpr>(ExprKind::binary, op, std::move(left), std::move(right), where),
               children);
  }
  return left;
}

ExprPtr Parser::parse_concat() {
  ExprPtr first = parse_product();
  if (!at_op("~")) return first;
  auto node = std::make_unique<ConcatExpr>(current().position);
  node->height = first->height + 1;
  node->items.push_back(std::move(first));
  while (skip_op("~")) {
    node->items.push_back(parse_product());
    node->height = std::max(node->height, node->items.back()->height + 1);
  }
  return finish(std::move(node), {});
}

ExprPtr Parser::parse_product() {
  ExprPtr left = parse_power();
  while (true) {
    Operator op;
    if (at_op("*"))
      op = Operator::multiply;
    else if (at_op("/"))
      op = Operator::divide;
    else if (at_op("//"))
      op = Operator::floor_divide;
    else if (at_op("%"))
      op = Operator::modulo;
    else
      return left;
    const Position where = advance().position;
    ExprPtr right = parse_power();
    const std::initializer_list<const Expr*> children = {left.get(), right.get()};
    left =
        finish(std::make_unique<BinaryExpr>(ExprKind::binary, op, std::move(left), std::move(right), where),
               children);
  }
}

ExprPtr Parser::parse_power() {
  ExprPtr left = parse_unary();
  while (at_op("**")) {
    const Position where = advance().position;
    ExprPtr right = parse_unary();
    const std::initializer_list<const Expr*> children = {left.get(), right.get()};
    left = finish(std::make_unique<BinaryExpr>(ExprKind::binary, Operator::power, std::move(left),
                                               std::move(right), where),
                  children);
  }
  return left;
}

ExprPtr Parser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  ExprPtr expr;
  if (at_op("-") || at_op("+")) {
    const Operator op = at_op("-") ? Operator::negative : Operator::positive;
    const Position where = advance().position;
    ExprPtr operand = parse_unary(false);
    const Expr* child = operand.get();
    expr = finish(std::make_unique<UnaryExpr>(op, std::move(operand), where), {child});
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filter ? parse_filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::parse_number() {
  const Token& token = advance();
  const std::string& text = token.text;
  const auto constant = [&](Value value) {
    return std::make_unique<ConstantExpr>(std::move(value), token.position);
  };
  if (token.kind == TokenKind::real) {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status == std::errc::result_out_of_range) {
      // Too large or too small to hold; from_chars leaves open which.
      const size_t exponent = text.find_first_of("eE");
      const bool tiny = exponent != std::string::npos && text[exponent + 1] == '-';
      value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    }
    return constant(Value::real(value));
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    if (text[1] == 'x' || text[1] == 'X') base = 16;
    if (text[1] == 'o' || text[1] == 'O') base = 8;
    if (text[1] == 'b' || text[1] == 'B') base = 2;
  }
  const std::string_view digits = std::string_view(text).substr(base == 10 ? 0 : 2);
  if (digits.size() > 4300) error("an integer of more than 4300 digits", token.position);
  const BigInt value = BigInt::parse(digits, base).value_or(BigInt());
  if (const auto small = value.to_int64()) return constant(Value::integer(*small));
  return constant(Value(Type::big_integer, std::make_shared<BigInteger>(value)));
}

ExprPtr Parser::parse_primary() {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::name: {
      advance();
      const auto constant = [&](Value value) {
        return std::make_unique<ConstantExpr>(std::move(value), token.position);
      };
      if (token.text == "true" || token.text == "True") return constant(Value::boolean(true));
      if (token.text == "false" || token.text == "False") return constant(Value::boolean(false));
      if (token.text == "none" || token.text == "None") return constant(Value::none());
      return std::make_unique<NameExpr>(token.text, token.position);
    }
    case TokenKind::string: {
      std::string text = advance().text;
      while (current().kind == TokenKind::string) text += advance().text;
      return std::make_unique<ConstantExpr>(constant_string(std::move(text)), token.position);
    }
    case TokenKind::integer:
    case TokenKind::real:
      return parse_number();
    default:
      break;
  }
  if (at_op("(")) {
    advance();
    ExprPtr inner = parse_tuple(true, "", true);
    expect_op(")");
    return inner;
  }
  if (at_op("[")) return parse_list();
  if (at_op("{")) return parse_dict();
  if (token.kind == TokenKind::op) error(fmt::format("unexpected '{}'", token.text));
  if (token.kind == TokenKind::end) error("Unexpected end of template.");
  error(token.kind == TokenKind::block_end ? "unexpected 'end of statement block'"
                                           : "unexpected 'end of print statement'");
}

ExprPtr Parser::parse_list() {
  auto list = std::make_unique<SequenceExpr>(ExprKind::list, advance().position);
  while (!at_op("]")) {
    if (!list->items.empty()) expect_op(",");
    if (at_op("]")) break;
    list->items.push_back(parse_expression());
    list->height = std::max(list->height, list->items.back()->height + 1);
  }
  expect_op("]");
  return finish(std::move(list), {});
}

ExprPtr Parser::parse_dict() {
  auto dict = std::make_unique<DictExpr>(advance().position);
  while (!at_op("}")) {
    if (!dict->items.empty()) expect_op(",");
    if (at_op("}")) break;
    ExprPtr key = parse_expression();
    expect_op(":");
    ExprPtr value = parse_expression();
    dict->height = std::max({dict->height, key->height + 1, value->height + 1});
    dict->items.emplace_back(std::move(key), std::move(value));
  }
  expect_op("}");
  return finish(std::move(dict), {});
}

ExprPtr Parser::parse_postfix(ExprPtr expr) {
  while (true) {
    if (at_op(".") || at_op("["))
      expr = parse_subscript(std::move(expr));
    else if (at_op("("))
      expr = parse_call(std::move(expr));
    else
      return expr;
  }
}

ExprPtr Parser::parse_filters_and_tests(ExprPtr expr) {
  while (true) {
    if (at_op("|"))
      expr = parse_filter(std::move(expr), false);
    else if (at_name("is"))
      expr = parse_test(std::move(expr));
    else if (at_op("("))
      expr = parse_call(std::move(expr));
    else
      return expr;
  }
}

ExprPtr Parser::parse_subscript(ExprPtr object) {
  const Expr* child = object.get();
  if (at_op("[")) return parse_subscripted(std::move(object));
  advance();
  const Position where = current().position;
  if (current().kind == TokenKind::name) {
    return finish(std::make_unique<AttributeExpr>(std::move(object), advance().text, where), {child});
  }
  if (current().kind != TokenKind::integer) error("expected name or number");
  return finish(std::make_unique<ItemExpr>(std::move(object), parse_number(), where), {child});
}

ExprPtr Parser::parse_subscripted(ExprPtr object) {
  const Position where = advance().position;
  auto slice = std::make_unique<SliceExpr>(where);
  auto keys = std::make_unique<SequenceExpr>(ExprKind::tuple, where);
  bool sliced = false;
  while (!at_op("]")) {
    if (sliced) error("a slice cannot be one of several subscripts");
    if (!keys->items.empty()) expect_op(",");
    ExprPtr first;
    if (!at_op(":")) first = parse_expression();
    if (!at_op(":")) {
      keys->items.push_back(std::move(first));
      keys->height = std::max(keys->height, keys->items.back()->height + 1);
      continue;
    }
    if (!keys->items.empty()) error("a slice cannot be one of several subscripts");
    sliced = true;
    advance();
    slice->start = std::move(first);
    if (!at_op(":") && !at_op("]") && !at_op(",")) slice->stop = parse_expression();
    if (skip_op(":") && !at_op("]") && !at_op(",")) slice->step = parse_expression();
  }
  expect_op("]");
  if (sliced) {
    const std::initializer_list<const Expr*> children = {object.get(), slice->start.get(), slice->stop.get(),
                                                         slice->step.get()};
    slice->object = std::move(object);
    return finish(std::move(slice), children);
  }
  ExprPtr key = keys->items.size() == 1 ? std::move(keys->items[0]) : finish(std::move(keys), {});
  const std::initializer_list<const Expr*> children = {object.get(), key.get()};
  return finish(std::make_unique<ItemExpr>(std::move(object), std::move(key), where), children);
}

CallArguments Parser::parse_arguments(int& height) {
  const Position where = current().position;
  expect_op("(");
  CallArguments arguments;
  std::set<std::string> keys;
  const auto ensure = [&](bool fine) {
    if (!fine) error("invalid syntax for function call expression", where);
  };
  const auto parse = [&] {
    ExprPtr expr = parse_expression();
    height = std::max(height, expr->height + 1);
    return expr;
  };
  for (bool first = true; !at_op(")"); first = false) {
    if (!first) {
      expect_op(",");
      if (at_op(")")) break;
    }
    if (skip_op("*")) {
      ensure(arguments.spread_positional == nullptr && arguments.spread_named == nullptr);
      arguments.spread_positional = parse();
    } else if (skip_op("**")) {
      ensure(arguments.spread_named == nullptr);
      arguments.spread_named = parse();
    } else if (current().kind == TokenKind::name && look().kind == TokenKind::op && look().text == "=") {
      ensure(arguments.spread_named == nullptr);
      std::string key = advance().text;
      advance();
      if (!keys.insert(key).second) error("keyword argument repeated: " + key);
      arguments.named.emplace_back(std::move(key), parse());
    } else {
      ensure(arguments.spread_positional == nullptr && arguments.spread_named == nullptr &&
             arguments.named.empty());
      arguments.positional.push_back(parse());
    }
  }
  expect_op(")");
  return arguments;
}

ExprPtr Parser::parse_call(ExprPtr callee) {
  auto node = std::make_unique<CallExpr>(callee->position);
  node->height = callee->height + 1;
  node->callee = std::move(callee);
  node->arguments = parse_arguments(node->height);
  return finish(std::move(node), {});
}

ExprPtr Parser::parse_filter(ExprPtr operand, bool after_pipe) {
  while (after_pipe || at_op("|")) {
    if (!after_pipe) advance();
    after_pipe = false;
    const Position where = current().position;
    std::string name = expect_any_name();
    while (skip_op(".")) name += "." + expect_any_name();
    auto node = std::make_unique<FilterExpr>(ExprKind::filter, std::move(name), where);
    if (operand != nullptr) node->height = operand->height + 1;
    node->operand = std::move(operand);
    if (at_op("(")) node->arguments = parse_arguments(node->height);
    operand = finish(std::move(node), {});
  }
  return operand;
}

ExprPtr Parser::parse_test(ExprPtr operand) {
  const Position where = advance().position;
  const bool negated = skip_name("not");
  std::string name = expect_any_name();
  while (skip_op(".")) name += "." + expect_any_name();
  auto node = std::make_unique<FilterExpr>(ExprKind::test, std::move(name), where);
  node->height = operand->height + 1;
  node->operand = std::move(operand);
  const TokenKind kind = current().kind;
  if (at_op("(")) {
    node->arguments = parse_arguments(node->height);
  } else if ((kind == TokenKind::name && !at_name("else") && !at_name("or") && !at_name("and")) ||
             kind == TokenKind::string || kind == TokenKind::integer || kind == TokenKind::real ||
             at_op("[") || at_op("{")) {
    if (at_name("is")) error("You cannot chain multiple tests with is");
    ExprPtr argument = parse_postfix(parse_primary());
    node->height = std::max(node->height, argument->height + 1);
    node->arguments.positional.push_back(std::move(argument));
  }
  ExprPtr test = finish(std::move(node), {});
  if (!negated) return test;
  const Expr* child = test.get();
  return finish(std::make_unique<UnaryExpr>(Operator::logical_not, std::move(test), where), {child});
}

}  // namespace qwench::jinja
