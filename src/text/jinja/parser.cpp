#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace qwench::jinja {
namespace {

constexpr int kMaxNesting = 200;  // of brackets, operators and tags inside each other
constexpr int kMaxHeight = 1000;  // of an expression's tree: a + b + c ... grows by one each

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "template data / text";
    case TokenKind::variable_begin:
      return "begin of print statement";
    case TokenKind::variable_end:
      return "end of print statement";
    case TokenKind::block_begin:
      return "begin of statement block";
    case TokenKind::block_end:
      return "end of statement block";
    case TokenKind::string:
      return "string";
    case TokenKind::integer:
      return "integer";
    case TokenKind::real:
      return "float";
    case TokenKind::end:
      return "end of template";
    case TokenKind::name:
    case TokenKind::op:
      break;
  }
  return token.text;
}

bool is_reserved(const std::string& name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
         name == "None";
}

}  // namespace

Parser::Parser(const std::string& source, std::string name)
    : name_(std::move(name)), tokens_(tokenize(source, name_)) {}

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    parser_.error(fmt::format("more than {} levels of nesting", kMaxNesting));
  }
}

void Parser::check_height(const Expr& expr) const {
  if (expr.height > kMaxHeight)
    error(fmt::format("an expression of more than {} levels", kMaxHeight), expr.position);
}

void Parser::error(const std::string& message, Position where) const {
  throw TemplateError(TemplateErrorKind::syntax, name_, message, where.line, where.column);
}

// --- Tokens

const Token& Parser::advance() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_op(std::string_view op) {
  if (!at_op(op)) return false;
  advance();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  advance();
  return true;
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) error(fmt::format("expected token '{}', got '{}'", op, describe(current())));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) error(fmt::format("expected token '{}', got '{}'", name, describe(current())));
}

std::string Parser::expect_any_name() {
  if (current().kind != TokenKind::name)
    error(fmt::format("expected token 'name', got '{}'", describe(current())));
  return advance().text;
}

void Parser::expect(TokenKind kind) {
  if (current().kind != kind) {
    error(fmt::format("expected token '{}', got '{}'", describe({kind, "", {}}), describe(current())));
  }
  advance();
}

void Parser::unknown_tag(const std::string* tag, Position where) const {
  std::string message =
      tag == nullptr ? "Unexpected end of template." : fmt::format("Encountered unknown tag '{}'.", *tag);
  if (!end_tags_.empty()) {
    const std::string wanted = fmt::format("'{}'", fmt::join(end_tags_.back(), "' or '"));
    const bool nested_wrongly =
        tag != nullptr && std::any_of(end_tags_.begin(), end_tags_.end(), [&](const auto& tags) {
          return std::find(tags.begin(), tags.end(), *tag) != tags.end();
        });
    message += nested_wrongly ? " You probably made a nesting mistake. Jinja is expecting this tag, but "
                                "currently looking for " +
                                    wanted + "."
                              : " Jinja was looking for the following tags: " + wanted + ".";
  }
  if (!open_tags_.empty()) {
    message += fmt::format(" The innermost block that needs to be closed is '{}'.", open_tags_.back());
  }
  error(message, where);
}

// --- Statements

Body Parser::parse() { return parse_body({}); }

Body Parser::parse_body(EndTags end_tags) {
  Body body;
  if (end_tags.size() != 0) end_tags_.emplace_back(end_tags.begin(), end_tags.end());
  while (current().kind != TokenKind::end) {
    const Position where = current().position;
    switch (current().kind) {
      case TokenKind::data:
        body.push_back(std::make_unique<TextStmt>(advance().text, where));
        break;
      case TokenKind::variable_begin:
        advance();
        body.push_back(std::make_unique<OutputStmt>(parse_tuple(true, "", false), where));
        expect(TokenKind::variable_end);
        break;
      default: {
        expect(TokenKind::block_begin);
        const auto at_end = [&](std::string_view tag) { return at_name(tag); };
        if (std::any_of(end_tags.begin(), end_tags.end(), at_end)) {
          end_tags_.pop_back();
          return body;
        }
        parse_statement(body);
        expect(TokenKind::block_end);
      }
    }
  }
  if (end_tags.size() != 0) unknown_tag(nullptr, current().position);
  return body;
}

Body Parser::parse_until(EndTags end_tags, bool drop_end_tag) {
  skip_op(":");
  expect(TokenKind::block_end);
  Body body = parse_body(end_tags);
  if (drop_end_tag) advance();
  return body;
}

void Parser::parse_statement(Body& body) {
  const Nesting nesting(*this);
  if (current().kind != TokenKind::name) error("tag name expected");
  const std::string tag = current().text;
  const Position where = current().position;
  open_tags_.push_back(tag);
  if (tag == "print")
    parse_print(body);
  else if (tag == "if")
    body.push_back(parse_if());
  else if (tag == "for")
    body.push_back(parse_for());
  else if (tag == "set")
    body.push_back(parse_set());
  else if (tag == "with")
    body.push_back(parse_with());
  else if (tag == "macro")
    body.push_back(parse_macro());
  else if (tag == "call")
    body.push_back(parse_call_block());
  else if (tag == "generation")
    body.push_back(parse_generation());
  else if (tag == "filter")
    body.push_back(parse_filter_block());
  else if (tag == "block")
    body.push_back(parse_block());
  else if (tag == "autoescape")
    body.push_back(parse_autoescape());
  else if (tag == "extends" || tag == "include" || tag == "import" || tag == "from")
    body.push_back(parse_load(tag));
  else if (tag == "break" || tag == "continue") {
    advance();
    body.push_back(
        std::make_unique<LoopControlStmt>(tag == "break" ? StmtKind::break_ : StmtKind::continue_, where));
  } else {
    open_tags_.pop_back();
    unknown_tag(&tag, where);
  }
  open_tags_.pop_back();
}

void Parser::parse_print(Body& body) {
  advance();
  for (bool first = true; current().kind != TokenKind::block_end; first = false) {
    if (!first) expect_op(",");
    const Position where = current().position;
    body.push_back(std::make_unique<OutputStmt>(parse_expression(), where));
  }
}

StmtPtr Parser::parse_if() {
  auto node = std::make_unique<IfStmt>(advance().position);
  while (true) {
    ExprPtr condition = parse_tuple(false, "", false);
    node->branches.emplace_back(std::move(condition), parse_until({"elif", "else", "endif"}, false));
    const std::string& end = advance().text;
    if (end == "elif") continue;
    if (end == "else") node->otherwise = parse_until({"endif"}, true);
    return node;
  }
}

StmtPtr Parser::parse_for() {
  auto node = std::make_unique<ForStmt>(advance().position);
  node->target = parse_target(false, true);
  expect_name("in");
  node->iterable = parse_tuple(false, "recursive", false);
  if (skip_name("if")) node->test = parse_expression();
  node->recursive = skip_name("recursive");
  node->body = parse_until({"endfor", "else"}, false);
  if (advance().text == "else") {
    node->otherwise = parse_until({"endfor"}, true);
    node->has_else = !node->otherwise.empty();
  }
  return node;
}

StmtPtr Parser::parse_set() {
  const Position where = advance().position;
  Target target = parse_target(true, false);
  if (skip_op("=")) {
    auto node = std::make_unique<SetStmt>(where);
    node->target = std::move(target);
    node->value = parse_tuple(true, "", false);
    return node;
  }
  auto node = std::make_unique<SetBlockStmt>(where);
  node->target = std::move(target);
  if (at_op("|")) node->filter = parse_filter(nullptr, false);
  node->body = parse_until({"endset"}, true);
  return node;
}

StmtPtr Parser::parse_with() {
  auto node = std::make_unique<WithStmt>(advance().position);
  while (current().kind != TokenKind::block_end) {
    if (!node->targets.empty()) expect_op(",");
    node->targets.push_back(parse_target(false, false));
    expect_op("=");
    node->values.push_back(parse_expression());
  }
  node->body = parse_until({"endwith"}, true);
  return node;
}

void Parser::parse_signature(MacroBody& macro) {
  expect_op("(");
  while (!at_op(")")) {
    if (!macro.parameters.empty()) expect_op(",");
    const Target parameter = parse_name_target();
    if (skip_op("=")) {
      macro.defaults.push_back(parse_expression());
    } else if (!macro.defaults.empty()) {
      error("non-default argument follows default argument");
    }
    macro.parameters.push_back(parameter.name);
  }
  expect_op(")");
}

StmtPtr Parser::parse_macro() {
  auto node = std::make_unique<MacroStmt>(advance().position);
  node->name = parse_name_target().name;
  parse_signature(node->macro);
  node->macro.body = parse_until({"endmacro"}, true);
  return node;
}

StmtPtr Parser::parse_call_block() {
  auto node = std::make_unique<CallBlockStmt>(advance().position);
  if (at_op("(")) parse_signature(node->macro);
  node->call = parse_expression();
  if (node->call->kind != ExprKind::call) error("expected call", node->position);
  node->macro.body = parse_until({"endcall"}, true);
  return node;
}

StmtPtr Parser::parse_generation() {
  auto node = std::make_unique<GenerationStmt>(advance().position);
  node->macro.body = parse_until({"endgeneration"}, true);
  return node;
}

StmtPtr Parser::parse_filter_block() {
  auto node = std::make_unique<FilterBlockStmt>(advance().position);
  node->filter = parse_filter(nullptr, true);
  node->body = parse_until({"endfilter"}, true);
  return node;
}

StmtPtr Parser::parse_block() {
  auto node = std::make_unique<BlockStmt>(advance().position);
  node->name = expect_any_name();
  node->scoped = skip_name("scoped");
  node->required = skip_name("required");
  if (at_op("-"))
    error("Block names in Jinja have to be valid Python identifiers and may not contain hyphens");
  node->body = parse_until({"endblock"}, true);
  if (node->required) {
    for (const StmtPtr& stmt : node->body) {
      const auto* text = stmt->kind == StmtKind::text ? static_cast<const TextStmt*>(stmt.get()) : nullptr;
      if (text == nullptr || text->text.find_first_not_of(" \t\n\r\f\v") != std::string::npos) {
        error("Required blocks can only contain comments or whitespace");
      }
    }
  }
  skip_name(node->name);
  return node;
}

StmtPtr Parser::parse_autoescape() {
  auto node = std::make_unique<AutoescapeStmt>(advance().position);
  node->value = parse_expression();
  node->body = parse_until({"endautoescape"}, true);
  return node;
}

bool Parser::parse_import_context() {
  if ((!at_name("with") && !at_name("without")) || look().kind != TokenKind::name || look().text != "context")
    return false;
  advance();
  advance();
  return true;
}

StmtPtr Parser::parse_load(const std::string& tag) {
  auto node = std::make_unique<LoadStmt>(tag, advance().position);
  node->name = parse_expression();
  if (tag == "include" && at_name("ignore") && look().text == "missing") {
    advance();
    advance();
  }
  if (tag == "import") {
    expect_name("as");
    node->imported.push_back(parse_name_target());
  }
  if (tag == "from") {
    expect_name("import");
    parse_from_names(*node);
  } else if (tag != "extends") {
    parse_import_context();
  }
  return node;
}

void Parser::parse_from_names(LoadStmt& load) {
  while (true) {
    if (!load.imported.empty()) expect_op(",");
    if (current().kind != TokenKind::name) expect_any_name();
    if (parse_import_context()) return;
    Target target = parse_name_target();
    if (target.name[0] == '_') error("names starting with an underline can not be imported", target.position);
    if (skip_name("as")) target = parse_name_target();
    load.imported.push_back(std::move(target));
    if (parse_import_context() || !at_op(",")) return;
  }
}

// --- Targets

Target Parser::parse_name_target() {
  Target target;
  target.position = current().position;
  target.name = expect_any_name();
  if (is_reserved(target.name)) error("can't assign to 'name'", target.position);
  return target;
}

Target Parser::parse_target_primary(bool with_namespace) {
  const Nesting nesting(*this);
  if (at_op("(")) {
    advance();
    Target inner = parse_target(false, false);
    expect_op(")");
    return inner;
  }
  if (current().kind != TokenKind::name || is_reserved(current().text)) {
    if (current().kind == TokenKind::op && !at_op("[") && !at_op("{"))
      error(fmt::format("unexpected '{}'", current().text));
    error("can't assign to " + describe(current()));
  }
  Target target;
  target.position = current().position;
  target.name = advance().text;
  if (with_namespace && skip_op(".")) {
    target.kind = Target::Kind::attribute;
    target.attribute = expect_any_name();
  }
  return target;
}

Target Parser::parse_target(bool with_namespace, bool until_in) {
  Target tuple;
  tuple.kind = Target::Kind::tuple;
  tuple.position = current().position;
  bool comma = false;
  while (true) {
    if (current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end || at_op(")") ||
        (until_in && at_name("in"))) {
      break;
    }
    tuple.items.push_back(parse_target_primary(with_namespace));
    if (!skip_op(",")) break;
    comma = true;
  }
  if (!comma && tuple.items.size() == 1) {
    Target single = std::move(tuple.items[0]);
    return single;
  }
  if (tuple.items.empty() && !at_op(")")) {
    error(fmt::format("Expected an expression, got '{}'", describe(current())));
  }
  return tuple;
}

}  // namespace qwench::jinja
