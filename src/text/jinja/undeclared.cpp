#include "text/jinja/undeclared.h"

#include "text/jinja/traversal.h"

namespace qwench::jinja {
namespace {

class UndeclaredNames {
 public:
  explicit UndeclaredNames(std::set<std::string> names) : names_(std::move(names)) {}

  std::set<std::string> run(const Body& body) {
    visit(body);
    return std::move(found_);
  }

 private:
  void visit(const Body& body) {
    for (const StmtPtr& stmt : body) visit(*stmt);
  }

  void visit(const Expr& expr) {
    if (expr.kind == ExprKind::name) {
      const std::string& name = static_cast<const NameExpr&>(expr).name;
      if (names_.count(name) != 0) found_.insert(name);
    }
    for_each_child(expr, [this](const Expr& child) { visit(child); });
  }

  void assign(const std::string& name) { names_.erase(name); }

  void visit(const Target& target) {
    for (const std::string& name : target_names(target)) assign(name);
  }

  void visit(const MacroBody& macro) {
    for (const std::string& parameter : macro.parameters) assign(parameter);
    for (const ExprPtr& value : macro.defaults) visit(*value);
    visit(macro.body);
  }

  void visit(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::text:
      case StmtKind::block:
      case StmtKind::break_:
      case StmtKind::continue_:
        return;
      case StmtKind::output:
        return visit(*static_cast<const OutputStmt&>(stmt).value);
      case StmtKind::if_: {
        const auto& node = static_cast<const IfStmt&>(stmt);
        for (const auto& [condition, body] : node.branches) {
          visit(*condition);
          visit(body);
        }
        return visit(node.otherwise);
      }
      case StmtKind::for_: {
        const auto& node = static_cast<const ForStmt&>(stmt);
        visit(node.target);
        visit(*node.iterable);
        visit(node.body);
        visit(node.otherwise);
        if (node.test != nullptr) visit(*node.test);
        return;
      }
      case StmtKind::set: {
        const auto& node = static_cast<const SetStmt&>(stmt);
        visit(node.target);
        return visit(*node.value);
      }
      case StmtKind::set_block: {
        const auto& node = static_cast<const SetBlockStmt&>(stmt);
        visit(node.target);
        if (node.filter != nullptr) visit(*node.filter);
        return visit(node.body);
      }
      case StmtKind::with: {
        const auto& node = static_cast<const WithStmt&>(stmt);
        for (const Target& target : node.targets) visit(target);
        for (const ExprPtr& value : node.values) visit(*value);
        return visit(node.body);
      }
      case StmtKind::macro:
        return visit(static_cast<const MacroStmt&>(stmt).macro);
      case StmtKind::call_block: {
        const auto& node = static_cast<const CallBlockStmt&>(stmt);
        visit(*node.call);
        return visit(node.macro);
      }
      case StmtKind::generation:
        return visit(static_cast<const GenerationStmt&>(stmt).macro);
      case StmtKind::filter_block: {
        const auto& node = static_cast<const FilterBlockStmt&>(stmt);
        visit(node.body);
        return visit(*node.filter);
      }
      case StmtKind::autoescape: {
        const auto& node = static_cast<const AutoescapeStmt&>(stmt);
        visit(*node.value);
        return visit(node.body);
      }
      case StmtKind::load:
        return visit(*static_cast<const LoadStmt&>(stmt).name);
    }
  }

  std::set<std::string> names_;
  std::set<std::string> found_;
};

}  // namespace

std::set<std::string> undeclared_names(const Body& body, std::set<std::string> names) {
  return UndeclaredNames(std::move(names)).run(body);
}

std::set<std::string> target_names(const Target& target) {
  std::set<std::string> names;
  if (target.kind == Target::Kind::name) names.insert(target.name);
  for (const Target& item : target.items) names.merge(target_names(item));
  return names;
}

void for_each_statement(const Body& body, const std::function<void(Stmt&)>& f) {
  for (const StmtPtr& pointer : body) {
    Stmt& stmt = *pointer;
    f(stmt);
    switch (stmt.kind) {
      case StmtKind::if_: {
        const auto& node = static_cast<const IfStmt&>(stmt);
        for (const auto& branch : node.branches) for_each_statement(branch.second, f);
        for_each_statement(node.otherwise, f);
        break;
      }
      case StmtKind::for_: {
        const auto& node = static_cast<const ForStmt&>(stmt);
        for_each_statement(node.body, f);
        for_each_statement(node.otherwise, f);
        break;
      }
      case StmtKind::set_block:
        for_each_statement(static_cast<const SetBlockStmt&>(stmt).body, f);
        break;
      case StmtKind::with:
        for_each_statement(static_cast<const WithStmt&>(stmt).body, f);
        break;
      case StmtKind::macro:
        for_each_statement(static_cast<const MacroStmt&>(stmt).macro.body, f);
        break;
      case StmtKind::call_block:
        for_each_statement(static_cast<const CallBlockStmt&>(stmt).macro.body, f);
        break;
      case StmtKind::generation:
        for_each_statement(static_cast<const GenerationStmt&>(stmt).macro.body, f);
        break;
      case StmtKind::filter_block:
        for_each_statement(static_cast<const FilterBlockStmt&>(stmt).body, f);
        break;
      case StmtKind::block:
        for_each_statement(static_cast<const BlockStmt&>(stmt).body, f);
        break;
      case StmtKind::autoescape:
        for_each_statement(static_cast<const AutoescapeStmt&>(stmt).body, f);
        break;
      case StmtKind::text:
      case StmtKind::output:
      case StmtKind::set:
      case StmtKind::break_:
      case StmtKind::continue_:
      case StmtKind::load:
        break;
    }
  }
}

void for_each_assigned(const Stmt& stmt, const std::function<void(const Target&)>& f) {
  switch (stmt.kind) {
    case StmtKind::for_:
      return f(static_cast<const ForStmt&>(stmt).target);
    case StmtKind::set:
      return f(static_cast<const SetStmt&>(stmt).target);
    case StmtKind::set_block:
      return f(static_cast<const SetBlockStmt&>(stmt).target);
    default:
      return;
  }
}

}  // namespace qwench::jinja
