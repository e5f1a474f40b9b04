#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/scopes.h"

namespace qwench::jinja {

class LoopContext;

/// Runs a parsed template once. Failures are thrown as Failure, with the place in the Runtime's position.
class Interpreter {
 public:
  /// The tree and the runtime must outlive it.
  Interpreter(Runtime& rt, const Tree& tree, Context::Variables variables);

  TrackedText run();
  /// The text of the generation blocks, in code points of the output, in the order in which they ended.
  const std::vector<ByteSpan>& generation_spans() const { return generation_spans_; }

  /// For macros and recursive loops.
  Value call_macro(const MacroBody& macro, const std::string* name, const std::shared_ptr<Activation>& outer,
                   const std::shared_ptr<Context>& context, Arguments arguments);
  Value run_recursive_loop(const ForStmt& node, const Value& iterable,
                           const std::shared_ptr<Activation>& outer, const std::shared_ptr<Context>& context,
                           int depth);
  Value call_block(const BlockStmt& block, const std::shared_ptr<Context>& context);
  const BlockStmt* find_block(std::string_view name) const;

  /// For the tests of loops.
  Value evaluate(const Expr& expr, const Frame& frame);
  void enter(const ScopeLoads& loads, const Frame& frame) const;
  void assign(const Target& target, Value value, const Frame& frame);
  static Value value_of(Runtime& rt, const Target& target, const Frame& frame);
  Runtime& runtime() { return rt_; }

 private:
  enum class Flow : uint8_t { normal, break_, continue_ };

  /// Held while a function of the template runs.
  class CallDepth;

  // Statements (interpreter.cpp)
  Flow execute(const Body& body, const Frame& frame);
  Flow execute(const Stmt& stmt, const Frame& frame);
  Flow execute_if(const IfStmt& node, const Frame& frame);
  Flow execute_for(const ForStmt& node, const Frame& frame);
  Flow run_loop(const ForStmt& node, const Value& iterable, const Frame& frame,
                const std::shared_ptr<Activation>& outer, int depth);
  Flow execute_with(const WithStmt& node, const Frame& frame);
  Flow execute_autoescape(const AutoescapeStmt& node, const Frame& frame);
  Flow execute_filter_block(const FilterBlockStmt& node, const Frame& frame);
  Flow execute_set_block(const SetBlockStmt& node, const Frame& frame);
  void execute_macro(const MacroStmt& node, const Frame& frame);
  void execute_call_block(const CallBlockStmt& node, const Frame& frame);
  void execute_generation(const GenerationStmt& node, const Frame& frame);
  void execute_block(const BlockStmt& node, const Frame& frame);
  void run_block(const BlockStmt& block, const std::shared_ptr<Context>& context, Output& out);
  void print(const Value& value, Output& out);
  void write(const Value& text, Output& out);
  void leave(const ScopeLoads& loads, const Frame& frame) const;
  void publish(const std::vector<Export>& exports, const Frame& frame) const;
  Value text_value(TrackedText text);

  // Expressions (evaluate.cpp)
  Value evaluate_name(const NameExpr& expr, const Frame& frame);
  Value evaluate_sequence(const SequenceExpr& expr, const Frame& frame);
  Value evaluate_dict(const DictExpr& expr, const Frame& frame);
  Value evaluate_logical(const BinaryExpr& expr, const Frame& frame);
  Value evaluate_compare(const CompareExpr& expr, const Frame& frame);
  Value evaluate_conditional(const ConditionalExpr& expr, const Frame& frame);
  Value evaluate_slice(const SliceExpr& expr, const Frame& frame);
  Value evaluate_call(const CallExpr& expr, const Frame& frame);
  Value evaluate_filter(const FilterExpr& expr, const Frame& frame);
  Value evaluate_test(const FilterExpr& expr, const Frame& frame);
  void evaluate_arguments(const CallArguments& from, Arguments& to, const Frame& frame);
  Value call_with(const CallExpr& expr, const Frame& frame, const Value* caller);

  Runtime& rt_;
  const Tree& tree_;
  std::shared_ptr<Context> context_;
  Output output_;
  std::vector<ByteSpan> generation_spans_;
  const Value* block_content_ = nullptr;  // what the filter of a filter block or set block is applied to
  int call_depth_ = 0;
};

}  // namespace qwench::jinja
