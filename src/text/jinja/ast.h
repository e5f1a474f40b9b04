#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace qwench::jinja {

// The tree of a parsed template. Names carry, after scope analysis (scope.h), the place of their variable.

/// A variable's place: `hops` function activations outward from the running one, then slot `slot`.
struct VariableRef {
  int hops = 0;
  int slot = -1;
};

enum class ExprKind : uint8_t {
  constant,
  name,
  tuple,
  list,
  dict,
  unary,
  binary,
  logical,
  compare,
  concat,
  conditional,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
};

struct Expr {
  explicit Expr(ExprKind k, Position p) : kind(k), position(p) {}
  virtual ~Expr() = default;
  ExprKind kind;
  int height = 1;  ///< levels of expressions below and including this one
  Position position;
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr final : Expr {
  ConstantExpr(Value v, Position p) : Expr(ExprKind::constant, p), value(std::move(v)) {}
  Value value;
};

struct NameExpr final : Expr {
  NameExpr(std::string n, Position p) : Expr(ExprKind::name, p), name(std::move(n)) {}
  std::string name;
  VariableRef variable;
};

struct SequenceExpr final : Expr {  // tuple or list
  SequenceExpr(ExprKind k, Position p) : Expr(k, p) {}
  std::vector<ExprPtr> items;
};

struct DictExpr final : Expr {
  explicit DictExpr(Position p) : Expr(ExprKind::dict, p) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};

enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,  // binary
  negative,
  positive,
  logical_not,  // unary
  logical_and,
  logical_or,  // logical
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,  // compare
};

struct UnaryExpr final : Expr {
  UnaryExpr(Operator o, ExprPtr e, Position p) : Expr(ExprKind::unary, p), op(o), operand(std::move(e)) {}
  Operator op;
  ExprPtr operand;
};

struct BinaryExpr final : Expr {  // binary or logical
  BinaryExpr(ExprKind k, Operator o, ExprPtr l, ExprPtr r, Position p)
      : Expr(k, p), op(o), left(std::move(l)), right(std::move(r)) {}
  Operator op;
  ExprPtr left;
  ExprPtr right;
};

struct CompareExpr final : Expr {
  explicit CompareExpr(Position p) : Expr(ExprKind::compare, p) {}
  ExprPtr first;
  std::vector<std::pair<Operator, ExprPtr>> rest;
};

struct ConcatExpr final : Expr {
  explicit ConcatExpr(Position p) : Expr(ExprKind::concat, p) {}
  std::vector<ExprPtr> items;
};

struct ConditionalExpr final : Expr {
  explicit ConditionalExpr(Position p) : Expr(ExprKind::conditional, p) {}
  ExprPtr condition;
  ExprPtr yes;
  ExprPtr no;  // null: undefined
};

struct AttributeExpr final : Expr {
  AttributeExpr(ExprPtr o, std::string n, Position p)
      : Expr(ExprKind::attribute, p), object(std::move(o)), name(std::move(n)) {}
  ExprPtr object;
  std::string name;
};

struct ItemExpr final : Expr {
  ItemExpr(ExprPtr o, ExprPtr k, Position p)
      : Expr(ExprKind::item, p), object(std::move(o)), key(std::move(k)) {}
  ExprPtr object;
  ExprPtr key;
};

struct SliceExpr final : Expr {
  explicit SliceExpr(Position p) : Expr(ExprKind::slice, p) {}
  ExprPtr object;
  ExprPtr start, stop, step;  // each may be null
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread_positional;  // *args, or null
  ExprPtr spread_named;       // **kwargs, or null
};

struct CallExpr final : Expr {
  explicit CallExpr(Position p) : Expr(ExprKind::call, p) {}
  ExprPtr callee;
  CallArguments arguments;
};

struct FilterExpr final : Expr {  // filter or test
  FilterExpr(ExprKind k, std::string n, Position p) : Expr(k, p), name(std::move(n)) {}
  ExprPtr operand;  // null: the content of the filter block
  std::string name;
  CallArguments arguments;
  bool checked_late = false;  // inside an if: a missing filter fails only when it is reached
  Value (*filter)(Runtime&, Arguments&) = nullptr;  // what the name stands for
  bool (*test)(Runtime&, Arguments&) = nullptr;
};

// --- Targets of assignments

struct Target {
  enum class Kind : uint8_t { name, attribute, tuple } kind = Kind::name;
  Position position;
  std::string name;       // name and attribute
  std::string attribute;  // of a namespace
  VariableRef variable;
  std::vector<Target> items;  // tuple
};

// --- Statements

enum class StmtKind : uint8_t {
  text,
  output,
  if_,
  for_,
  set,
  set_block,
  with,
  macro,
  call_block,
  generation,
  filter_block,
  block,
  autoescape,
  break_,
  continue_,
  load,
};

/// How a variable of a scope gets its value when the scope is entered.
struct ScopeLoad {
  int slot = -1;
  enum class Source : uint8_t { context, alias, undefined } source = Source::undefined;
  std::string name;   // context
  VariableRef alias;  // alias
};
using ScopeLoads = std::vector<ScopeLoad>;

struct Stmt {
  explicit Stmt(StmtKind k, Position p) : kind(k), position(p) {}
  virtual ~Stmt() = default;
  StmtKind kind;
  Position position;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct TextStmt final : Stmt {
  TextStmt(std::string t, Position p) : Stmt(StmtKind::text, p), text(std::move(t)) {}
  std::string text;
};

struct OutputStmt final : Stmt {
  OutputStmt(ExprPtr e, Position p) : Stmt(StmtKind::output, p), value(std::move(e)) {}
  ExprPtr value;
};

struct IfStmt final : Stmt {
  explicit IfStmt(Position p) : Stmt(StmtKind::if_, p) {}
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};

/// A variable that must be published to the template's context when it is assigned at the top level.
struct Export {
  std::string name;
  VariableRef variable;
};

struct ForStmt final : Stmt {
  explicit ForStmt(Position p) : Stmt(StmtKind::for_, p) {}
  Target target;
  ExprPtr iterable;
  ExprPtr test;  // may be null
  Body body;
  Body otherwise;
  bool has_else = false;
  bool recursive = false;
  bool extended = false;  // the body speaks of `loop`
  VariableRef loop_variable;
  ScopeLoads body_loads, else_loads, test_loads;
  Target test_target;  // the target as the test sees it
  int slots = 0;       // of the loop's own activation, when it is recursive
  int test_slots = 0;  // of the test's own activation
};

struct SetStmt final : Stmt {
  explicit SetStmt(Position p) : Stmt(StmtKind::set, p) {}
  Target target;
  ExprPtr value;
  std::vector<Export> exports;
};

struct SetBlockStmt final : Stmt {
  explicit SetBlockStmt(Position p) : Stmt(StmtKind::set_block, p) {}
  Target target;
  ExprPtr filter;  // may be null
  Body body;
  ScopeLoads loads;
  std::vector<Export> exports;
};

struct WithStmt final : Stmt {
  explicit WithStmt(Position p) : Stmt(StmtKind::with, p) {}
  std::vector<Target> targets;
  std::vector<ExprPtr> values;
  Body body;
  ScopeLoads loads;
};

/// What a macro and the body of a call block have in common.
struct MacroBody {
  std::vector<std::string> parameters;
  std::vector<VariableRef> parameter_variables;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  ScopeLoads loads;
  int slots = 0;
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;  // where the body speaks of them
  bool explicit_caller = false;
};

struct MacroStmt final : Stmt {
  explicit MacroStmt(Position p) : Stmt(StmtKind::macro, p) {}
  std::string name;
  MacroBody macro;
  VariableRef variable;
  bool exported = false;
};

struct CallBlockStmt final : Stmt {
  explicit CallBlockStmt(Position p) : Stmt(StmtKind::call_block, p) {}
  ExprPtr call;  // a CallExpr
  MacroBody macro;
};

struct GenerationStmt final : Stmt {
  explicit GenerationStmt(Position p) : Stmt(StmtKind::generation, p) {}
  MacroBody macro;
};

struct FilterBlockStmt final : Stmt {
  explicit FilterBlockStmt(Position p) : Stmt(StmtKind::filter_block, p) {}
  ExprPtr filter;
  Body body;
  ScopeLoads loads;
};

struct BlockStmt final : Stmt {
  explicit BlockStmt(Position p) : Stmt(StmtKind::block, p) {}
  std::string name;
  bool scoped = false;
  bool required = false;
  Body body;
  // The block's own function
  ScopeLoads loads;
  int slots = 0;
  int self_slot = -1, super_slot = -1;
  // Where it stands: the variables a scoped block sees
  std::vector<Export> visible;
};

struct AutoescapeStmt final : Stmt {
  explicit AutoescapeStmt(Position p) : Stmt(StmtKind::autoescape, p) {}
  ExprPtr value;
  Body body;
  ScopeLoads loads;
};

struct LoopControlStmt final : Stmt {
  LoopControlStmt(StmtKind k, Position p) : Stmt(k, p) {}
};

/// extends, include, import and from: this environment has no loader, so executing one fails.
struct LoadStmt final : Stmt {
  LoadStmt(std::string t, Position p) : Stmt(StmtKind::load, p), tag(std::move(t)) {}
  std::string tag;
  ExprPtr name;
  std::vector<Target> imported;
};

/// A whole template after parsing and scope analysis. Immutable.
struct Tree {
  Body body;
  ScopeLoads loads;
  int slots = 0;
  int self_slot = -1;
  std::vector<BlockStmt*> blocks;
};

}  // namespace qwench::jinja
