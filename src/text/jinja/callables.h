#pragma once

#include "text/jinja/interpreter.h"

namespace qwench::jinja {

// The Things that run parts of the template.

class Macro final : public Thing {
 public:
  /// `name` is null for the body of a call block.
  Macro(Interpreter& interpreter, const MacroBody& body, const std::string* name,
        std::shared_ptr<Activation> outer, std::shared_ptr<Context> context)
      : interpreter_(interpreter),
        body_(body),
        name_(name),
        outer_(std::move(outer)),
        context_(std::move(context)) {}
  ~Macro() override { release(std::move(outer_)); }
  std::string type_name() const override { return "Macro"; }
  TrackedText repr(Runtime& rt) const override;
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& rt, Arguments arguments) override;

 private:
  Interpreter& interpreter_;
  const MacroBody& body_;
  const std::string* name_;
  std::shared_ptr<Activation> outer_;
  std::shared_ptr<Context> context_;
};

/// `loop`
class LoopContext final : public Thing, public Collectable {
 public:
  /// `node`, `outer` and `context` are those of a recursive loop; else `node` is null.
  LoopContext(Interpreter& interpreter, Value iterable, IteratorPtr iterator, const ForStmt* node,
              std::shared_ptr<Activation> outer, std::shared_ptr<Context> context, int depth);
  ~LoopContext() override;

  /// The next item of the loop.
  bool advance(Runtime& rt, Value& item);

  std::string type_name() const override { return "LoopContext"; }
  TrackedText repr(Runtime& rt) const override;
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& rt, Arguments arguments) override;
  std::optional<int64_t> length(Runtime& rt) override;
  IteratorPtr iterate(Runtime& rt, const Value& self) override;
  bool truthy(Runtime& rt) override { return length(rt) != 0; }
  void surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) override;

  Value cycle(Runtime& rt, Arguments& arguments) const;
  Value changed(Runtime& rt, Arguments& arguments);

 private:
  const Value& peek(Runtime& rt);

  Interpreter& interpreter_;
  Value iterable_;  // missing when its length is not to be asked for
  IteratorPtr iterator_;
  const ForStmt* node_;
  std::shared_ptr<Activation> outer_;
  std::shared_ptr<Context> context_;
  int depth_;
  int64_t index_ = -1;
  int64_t length_ = -1;
  Value after_, current_, before_;
  Value last_changed_;  // a tuple
};

/// The items of a loop that pass its test.
class TestedIterator final : public Iterator {
 public:
  TestedIterator(Interpreter& interpreter, const ForStmt& node, IteratorPtr source, Frame frame)
      : interpreter_(interpreter), node_(node), source_(std::move(source)), frame_(std::move(frame)) {}
  bool next(Runtime& rt, Value& out) override;

 private:
  Interpreter& interpreter_;
  const ForStmt& node_;
  IteratorPtr source_;
  Frame frame_;
  bool started_ = false;
};

/// `self`: the blocks by name, each callable.
class TemplateReference final : public Thing {
 public:
  TemplateReference(Interpreter& interpreter, std::shared_ptr<Context> context)
      : interpreter_(interpreter), context_(std::move(context)) {}
  std::string type_name() const override { return "TemplateReference"; }
  TrackedText repr(Runtime&) const override { return TrackedText::of_template("<TemplateReference None>"); }
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  Value item(Runtime& rt, const Value& key) override;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Context> context_;
};

class BlockReference final : public Thing {
 public:
  BlockReference(Interpreter& interpreter, const BlockStmt& block, std::shared_ptr<Context> context)
      : interpreter_(interpreter), block_(block), context_(std::move(context)) {}
  std::string type_name() const override { return "BlockReference"; }
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& rt, Arguments arguments) override;

 private:
  Interpreter& interpreter_;
  const BlockStmt& block_;
  std::shared_ptr<Context> context_;
};

}  // namespace qwench::jinja
