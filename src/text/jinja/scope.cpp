#include "text/jinja/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/jinja/builtins.h"
#include "text/jinja/symbols.h"
#include "text/jinja/traversal.h"
#include "text/jinja/undeclared.h"

namespace qwench::jinja {
namespace {

/// First pass over one scope: what it reads and assigns. It stops where an inner scope begins.
class Declarer {
 public:
  explicit Declarer(Symbols& symbols) : symbols_(&symbols) {}

  void declare(const Body& body) {
    for (const StmtPtr& stmt : body) declare(*stmt);
  }

  void declare(const Expr& expr) {
    if (expr.kind == ExprKind::name) return symbols_->load(static_cast<const NameExpr&>(expr).name);
    for_each_child(expr, [this](const Expr& child) { declare(child); });
  }

  void declare(const Target& target) {
    switch (target.kind) {
      case Target::Kind::name:
        return symbols_->store(target.name);
      case Target::Kind::attribute:
        return symbols_->load(target.name);
      case Target::Kind::tuple:
        for (const Target& item : target.items) declare(item);
    }
  }

  void declare_parameters(const Target& target) {
    if (target.kind == Target::Kind::name) symbols_->declare_parameter(target.name);
    for (const Target& item : target.items) declare_parameters(item);
  }

 private:
  void declare(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::output:
        return declare(*static_cast<const OutputStmt&>(stmt).value);
      case StmtKind::if_:
        return declare_if(static_cast<const IfStmt&>(stmt));
      case StmtKind::for_:
        return declare(*static_cast<const ForStmt&>(stmt).iterable);
      case StmtKind::set: {
        const auto& set = static_cast<const SetStmt&>(stmt);
        declare(*set.value);
        return declare(set.target);
      }
      case StmtKind::set_block:
        return declare(static_cast<const SetBlockStmt&>(stmt).target);
      case StmtKind::with:
        for (const ExprPtr& value : static_cast<const WithStmt&>(stmt).values) declare(*value);
        return;
      case StmtKind::macro:
        return symbols_->store(static_cast<const MacroStmt&>(stmt).name);
      case StmtKind::call_block:
        return declare(*static_cast<const CallBlockStmt&>(stmt).call);
      case StmtKind::filter_block:
        return declare(*static_cast<const FilterBlockStmt&>(stmt).filter);
      case StmtKind::load: {
        const auto& load = static_cast<const LoadStmt&>(stmt);
        declare(*load.name);
        for (const Target& target : load.imported) declare(target);
        return;
      }
      case StmtKind::text:
      case StmtKind::generation:
      case StmtKind::block:
      case StmtKind::autoescape:
      case StmtKind::break_:
      case StmtKind::continue_:
        return;
    }
  }

  void declare_if(const IfStmt& node) {
    declare(*node.branches[0].first);
    Symbols* original = symbols_;
    std::vector<Symbols> branches(3, original->branch());
    symbols_ = &branches[0];
    declare(node.branches[0].second);
    symbols_ = &branches[1];
    for (size_t i = 1; i < node.branches.size(); ++i) {
      declare(*node.branches[i].first);
      Symbols* outer = symbols_;
      std::vector<Symbols> alternatives(1, outer->branch());
      symbols_ = &alternatives[0];
      declare(node.branches[i].second);
      symbols_ = outer;
      symbols_->merge_branches(alternatives);
    }
    symbols_ = &branches[2];
    declare(node.otherwise);
    symbols_ = original;
    symbols_->merge_branches(branches);
  }

  Symbols* symbols_;
};

/// Second pass: resolves the names and enters the inner scopes.
class Analyzer {
 public:
  explicit Analyzer(const std::string& name) : name_(name) {}

  Tree run(Body body) {
    Tree tree;
    tree.body = std::move(body);
    find_blocks(tree.body, tree);
    FunctionScope root;
    Symbols symbols(nullptr, &root);
    if (undeclared_names(tree.body, {"self"}).count("self") != 0)
      tree.self_slot = symbols.declare_parameter("self");
    Declarer(symbols).declare(tree.body);
    resolve(tree.body, {&symbols, true, false, false});
    tree.loads = symbols.loads();
    tree.slots = root.slots;
    for (BlockStmt* block : tree.blocks) resolve_block(*block);
    return tree;
  }

 private:
  struct Frame {
    Symbols* symbols;
    bool toplevel;  // assignments go to the template's context too
    bool soft;      // inside an if: filters are looked up late
    bool in_loop;
    Frame inner(Symbols& s) const { return {&s, false, false, in_loop}; }
    Frame softened() const { return {symbols, toplevel, true, in_loop}; }
  };

  [[noreturn]] void error(TemplateErrorKind kind, const std::string& message, Position where) const {
    throw TemplateError(kind, name_, message, where.line, where.column);
  }

  void find_blocks(const Body& body, Tree& tree) {
    std::set<std::string> names;
    for_each_statement(body, [&](Stmt& stmt) {
      if (stmt.kind != StmtKind::block) return;
      auto& block = static_cast<BlockStmt&>(stmt);
      if (!names.insert(block.name).second) {
        error(TemplateErrorKind::syntax, fmt::format("block '{}' defined twice", block.name), block.position);
      }
      tree.blocks.push_back(&block);
    });
  }

  // --- Expressions

  void resolve(Expr& expr, const Frame& frame) {
    if (expr.kind == ExprKind::name) {
      auto& name = static_cast<NameExpr&>(expr);
      name.variable = frame.symbols->variable(name.name);
      return;
    }
    Frame inner = frame;
    if (expr.kind == ExprKind::conditional) inner.soft = true;
    if (expr.kind == ExprKind::filter || expr.kind == ExprKind::test)
      check_exists(static_cast<FilterExpr&>(expr), frame);
    for_each_child(expr, [&](const Expr& child) { resolve(const_cast<Expr&>(child), inner); });
  }

  void check_exists(FilterExpr& expr, const Frame& frame) {
    const bool is_filter = expr.kind == ExprKind::filter;
    if (is_filter)
      expr.filter = find_filter(expr.name);
    else
      expr.test = find_test(expr.name);
    if (expr.filter != nullptr || expr.test != nullptr) return;
    if (!frame.soft) {
      error(TemplateErrorKind::syntax,
            fmt::format("No {} named '{}'.", is_filter ? "filter" : "test", expr.name), expr.position);
    }
    expr.checked_late = true;
  }

  void resolve(Target& target, const Frame& frame) {
    if (target.kind != Target::Kind::tuple) target.variable = frame.symbols->variable(target.name);
    for (Target& item : target.items) resolve(item, frame);
  }

  void add_exports(const Target& target, const Frame& frame, std::vector<Export>& exports) const {
    if (!frame.toplevel) return;
    if (target.kind == Target::Kind::name) exports.push_back({target.name, target.variable});
    for (const Target& item : target.items) add_exports(item, frame, exports);
  }

  // --- Statements

  void resolve(Body& body, const Frame& frame) {
    for (StmtPtr& stmt : body) resolve(*stmt, frame);
  }

  void resolve(Stmt& stmt, const Frame& frame) {
    switch (stmt.kind) {
      case StmtKind::text:
        return;
      case StmtKind::output:
        return resolve(*static_cast<OutputStmt&>(stmt).value, frame);
      case StmtKind::if_: {
        auto& node = static_cast<IfStmt&>(stmt);
        for (auto& [condition, body] : node.branches) {
          resolve(*condition, frame.softened());
          resolve(body, frame.softened());
        }
        return resolve(node.otherwise, frame.softened());
      }
      case StmtKind::for_:
        return resolve_for(static_cast<ForStmt&>(stmt), frame);
      case StmtKind::set: {
        auto& node = static_cast<SetStmt&>(stmt);
        resolve(node.target, frame);
        resolve(*node.value, frame);
        return add_exports(node.target, frame, node.exports);
      }
      case StmtKind::set_block:
        return resolve_set_block(static_cast<SetBlockStmt&>(stmt), frame);
      case StmtKind::with:
        return resolve_with(static_cast<WithStmt&>(stmt), frame);
      case StmtKind::macro: {
        auto& node = static_cast<MacroStmt&>(stmt);
        resolve_macro(node.macro, frame, node.position);
        node.variable = frame.symbols->variable(node.name);
        node.exported = frame.toplevel;
        return;
      }
      case StmtKind::call_block: {
        auto& node = static_cast<CallBlockStmt&>(stmt);
        resolve_macro(node.macro, frame, node.position);
        return resolve(*node.call, frame);
      }
      case StmtKind::generation:
        return resolve_macro(static_cast<GenerationStmt&>(stmt).macro, frame, stmt.position);
      case StmtKind::filter_block:
        return resolve_filter_block(static_cast<FilterBlockStmt&>(stmt), frame);
      case StmtKind::block: {
        auto& node = static_cast<BlockStmt&>(stmt);
        if (node.scoped) node.visible = frame.symbols->visible_stores();
        return;
      }
      case StmtKind::autoescape:
        return resolve_autoescape(static_cast<AutoescapeStmt&>(stmt), frame);
      case StmtKind::break_:
      case StmtKind::continue_:
        if (frame.in_loop) return;
        error(TemplateErrorKind::other,
              stmt.kind == StmtKind::break_ ? "'break' outside loop" : "'continue' not properly in loop",
              stmt.position);
      case StmtKind::load: {
        auto& node = static_cast<LoadStmt&>(stmt);
        if (node.tag == "extends" && !frame.toplevel) {
          error(TemplateErrorKind::syntax, "cannot use extend from a non top-level scope", stmt.position);
        }
        resolve(*node.name, frame);
        for (Target& target : node.imported) resolve(target, frame);
        return;
      }
    }
  }

  void resolve_for(ForStmt& node, const Frame& frame) {
    refuse_loop_assignment(node);
    FunctionScope own{frame.symbols->function(), frame.symbols->function()->depth + 1, 0};
    FunctionScope* function = node.recursive ? &own : frame.symbols->function();
    Symbols body_symbols(frame.symbols, function);
    node.extended =
        node.recursive || undeclared_names(node.body, {"loop"}).count("loop") != 0 || has_scoped_block(node);
    if (node.extended) body_symbols.declare_parameter("loop");
    Declarer declarer(body_symbols);
    declarer.declare_parameters(node.target);
    declarer.declare(node.body);

    resolve(*node.iterable, frame);
    if (node.test != nullptr) {
      FunctionScope test_function{frame.symbols->function(), frame.symbols->function()->depth + 1, 0};
      Symbols test_symbols(frame.symbols, &test_function);
      Declarer test_declarer(test_symbols);
      test_declarer.declare_parameters(node.target);
      test_declarer.declare(*node.test);
      const Frame test_frame = frame.inner(test_symbols);
      node.test_target = node.target;
      resolve(node.test_target, test_frame);
      resolve(*node.test, test_frame);
      node.test_loads = test_symbols.loads();
      node.test_slots = test_function.slots;
    }
    Frame body_frame = frame.inner(body_symbols);
    body_frame.in_loop = true;
    if (node.extended) node.loop_variable = body_symbols.variable("loop");
    resolve(node.target, body_frame);
    resolve(node.body, body_frame);
    node.body_loads = body_symbols.loads();
    if (node.has_else) {
      Symbols else_symbols(frame.symbols, function);
      Declarer(else_symbols).declare(node.otherwise);
      Frame else_frame = frame.inner(else_symbols);
      if (node.recursive) else_frame.in_loop = false;
      resolve(node.otherwise, else_frame);
      node.else_loads = else_symbols.loads();
    }
    node.slots = own.slots;
  }

  void refuse_loop_assignment(const ForStmt& node) const {
    const auto check = [&](const Target& target) {
      if (target_names(target).count("loop") != 0) {
        error(TemplateErrorKind::syntax, "Can't assign to special loop variable in for-loop target",
              target.position);
      }
    };
    check(node.target);
    const auto visit = [&](Stmt& stmt) { for_each_assigned(stmt, check); };
    for_each_statement(node.body, visit);
    for_each_statement(node.otherwise, visit);
  }

  static bool has_scoped_block(const ForStmt& node) {
    bool found = false;
    const auto visit = [&](Stmt& stmt) {
      found = found || (stmt.kind == StmtKind::block && static_cast<BlockStmt&>(stmt).scoped);
    };
    for_each_statement(node.body, visit);
    for_each_statement(node.otherwise, visit);
    return found;
  }

  void resolve_set_block(SetBlockStmt& node, const Frame& frame) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Declarer declarer(symbols);
    declarer.declare(node.body);
    if (node.filter != nullptr) declarer.declare(*node.filter);
    resolve(node.body, frame.inner(symbols));
    if (node.filter != nullptr) resolve(*node.filter, frame.inner(symbols));
    node.loads = symbols.loads();
    resolve(node.target, frame);
    add_exports(node.target, frame, node.exports);
  }

  void resolve_with(WithStmt& node, const Frame& frame) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Declarer declarer(symbols);
    for (const Target& target : node.targets) declarer.declare_parameters(target);
    declarer.declare(node.body);
    for (ExprPtr& value : node.values) resolve(*value, frame);
    const Frame inner = frame.inner(symbols);
    for (Target& target : node.targets) resolve(target, inner);
    resolve(node.body, inner);
    node.loads = symbols.loads();
  }

  void resolve_filter_block(FilterBlockStmt& node, const Frame& frame) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Declarer declarer(symbols);
    declarer.declare(node.body);
    declarer.declare(*node.filter);
    const Frame inner = frame.inner(symbols);
    resolve(node.body, inner);
    resolve(*node.filter, inner);
    node.loads = symbols.loads();
  }

  void resolve_autoescape(AutoescapeStmt& node, const Frame& frame) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Declarer declarer(symbols);
    declarer.declare(*node.value);
    declarer.declare(node.body);
    const Frame inner = frame.inner(symbols);
    resolve(*node.value, inner);
    resolve(node.body, inner);
    node.loads = symbols.loads();
  }

  void resolve_macro(MacroBody& macro, const Frame& frame, Position where) {
    FunctionScope function{frame.symbols->function(), frame.symbols->function()->depth + 1, 0};
    Symbols symbols(frame.symbols, &function);
    const auto& parameters = macro.parameters;
    std::set<std::string> distinct;
    for (const std::string& parameter : parameters) {
      if (!distinct.insert(parameter).second) {
        error(TemplateErrorKind::other, fmt::format("duplicate argument '{}' in macro definition", parameter),
              where);
      }
      symbols.declare_parameter(parameter);
    }
    Declarer declarer(symbols);
    for (const ExprPtr& value : macro.defaults) declarer.declare(*value);
    declarer.declare(macro.body);

    const auto names = undeclared_names(macro.body, {"caller", "kwargs", "varargs"});
    const auto has_parameter = [&](const char* parameter) { return distinct.count(parameter) != 0; };
    macro.explicit_caller = has_parameter("caller");
    if (names.count("caller") != 0) {
      if (!macro.explicit_caller) {
        macro.caller_slot = symbols.declare_parameter("caller");
      } else if (const auto required = parameters.end() - static_cast<std::ptrdiff_t>(macro.defaults.size());
                 std::find(parameters.begin(), required, "caller") != required) {
        error(TemplateErrorKind::syntax,
              "When defining macros or call blocks the special \"caller\" argument must be omitted or be "
              "given a default.",
              where);
      }
    }
    if (names.count("kwargs") != 0 && !has_parameter("kwargs"))
      macro.kwargs_slot = symbols.declare_parameter("kwargs");
    if (names.count("varargs") != 0 && !has_parameter("varargs"))
      macro.varargs_slot = symbols.declare_parameter("varargs");

    const Frame inner{&symbols, false, false, false};
    for (const std::string& parameter : parameters)
      macro.parameter_variables.push_back(symbols.variable(parameter));
    for (ExprPtr& value : macro.defaults) resolve(*value, inner);
    resolve(macro.body, inner);
    macro.loads = symbols.loads();
    macro.slots = function.slots;
  }

  void resolve_block(BlockStmt& block) {
    FunctionScope function;
    Symbols symbols(nullptr, &function);
    const auto names = undeclared_names(block.body, {"self", "super"});
    if (names.count("self") != 0) block.self_slot = symbols.declare_parameter("self");
    if (names.count("super") != 0) block.super_slot = symbols.declare_parameter("super");
    Declarer(symbols).declare(block.body);
    resolve(block.body, {&symbols, false, false, false});
    block.loads = symbols.loads();
    block.slots = function.slots;
  }

  const std::string& name_;
};

}  // namespace

Tree analyze(Body body, const std::string& name) { return Analyzer(name).run(std::move(body)); }

}  // namespace qwench::jinja
