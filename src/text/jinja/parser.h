#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace qwench::jinja {

/// Parses a template into its tree, by recursive descent over the tokens; names are not resolved yet. Throws
/// a TemplateError (syntax). Nesting is bounded, so that no template can exhaust the stack.
class Parser {
 public:
  Parser(const std::string& source, std::string name);
  Body parse();

 private:
  using EndTags = std::initializer_list<std::string_view>;

  // Statements (parser.cpp)
  Body parse_body(EndTags end_tags);
  Body parse_until(EndTags end_tags, bool drop_end_tag);
  void parse_statement(Body& body);
  void parse_print(Body& body);
  StmtPtr parse_if();
  StmtPtr parse_for();
  StmtPtr parse_set();
  StmtPtr parse_with();
  StmtPtr parse_macro();
  StmtPtr parse_call_block();
  StmtPtr parse_generation();
  StmtPtr parse_filter_block();
  StmtPtr parse_block();
  StmtPtr parse_autoescape();
  StmtPtr parse_load(const std::string& tag);
  void parse_from_names(LoadStmt& load);
  bool parse_import_context();
  void parse_signature(MacroBody& macro);
  Target parse_target(bool with_namespace, bool until_in);
  Target parse_target_primary(bool with_namespace);
  Target parse_name_target();

  // Expressions (parser_expressions.cpp)
  ExprPtr parse_expression(bool with_conditional = true);
  ExprPtr parse_tuple(bool with_conditional, std::string_view end_name, bool parenthesized);
  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter = true);
  ExprPtr parse_primary();
  ExprPtr parse_number();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr expr);
  ExprPtr parse_filters_and_tests(ExprPtr expr);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_subscripted(ExprPtr object);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr operand, bool after_pipe);
  ExprPtr parse_test(ExprPtr operand);
  CallArguments parse_arguments(int& height);

  // Tokens
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& advance();
  bool at_op(std::string_view op) const { return current().kind == TokenKind::op && current().text == op; }
  bool at_name(std::string_view name) const {
    return current().kind == TokenKind::name && current().text == name;
  }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_any_name();
  void expect(TokenKind kind);
  [[noreturn]] void error(const std::string& message) const { error(message, current().position); }
  [[noreturn]] void error(const std::string& message, Position where) const;
  [[noreturn]] void unknown_tag(const std::string* tag, Position where) const;

  /// Sets the node's height from its children's, and bounds it.
  template <typename T>
  ExprPtr finish(std::unique_ptr<T> node, std::initializer_list<const Expr*> children) const {
    for (const Expr* child : children) {
      if (child != nullptr) node->height = std::max(node->height, child->height + 1);
    }
    check_height(*node);
    return node;
  }
  void check_height(const Expr& expr) const;

  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  std::string name_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::vector<std::string> open_tags_;
  std::vector<std::vector<std::string>> end_tags_;
};

}  // namespace qwench::jinja
