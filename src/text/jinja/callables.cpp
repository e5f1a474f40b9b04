#include "text/jinja/callables.h"

#include <fmt/format.h>

namespace qwench::jinja {

// --- Macro

TrackedText Macro::repr(Runtime&) const {
  return TrackedText::of_template(name_ == nullptr ? "<Macro anonymous>" : "<Macro '" + *name_ + "'>");
}

Value Macro::attribute(Runtime& rt, const Value&, std::string_view name) {
  if (name == "name") return name_ == nullptr ? Value::none() : rt.heap.string(*name_);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const std::string& parameter : body_.parameters) names.push_back(rt.heap.string(parameter));
    return rt.heap.tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::boolean(body_.kwargs_slot >= 0);
  if (name == "catch_varargs") return Value::boolean(body_.varargs_slot >= 0);
  if (name == "caller") return Value::boolean(body_.caller_slot >= 0);
  if (name == "explicit_caller") return Value::boolean(body_.explicit_caller);
  return {};
}

Value Macro::call(Runtime&, Arguments arguments) {
  return interpreter_.call_macro(body_, name_, outer_, context_, std::move(arguments));
}

// --- LoopContext

LoopContext::LoopContext(Interpreter& interpreter, Value iterable, IteratorPtr iterator, const ForStmt* node,
                         std::shared_ptr<Activation> outer, std::shared_ptr<Context> context, int depth)
    : Collectable(interpreter.runtime().heap),
      interpreter_(interpreter),
      iterable_(std::move(iterable)),
      iterator_(std::move(iterator)),
      node_(node),
      outer_(std::move(outer)),
      context_(std::move(context)),
      depth_(depth) {}

LoopContext::~LoopContext() {
  std::vector<Value> values;
  std::vector<std::shared_ptr<Collectable>> others;
  surrender(values, others);
  release(std::move(values));
  for (auto& other : others) release(std::move(other));
  release(std::move(iterator_));
}

void LoopContext::surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) {
  for (Value* value : {&iterable_, &after_, &current_, &before_, &last_changed_})
    values.push_back(std::move(*value));
  others.push_back(std::move(outer_));
  others.push_back(std::move(context_));
}

bool LoopContext::advance(Runtime& rt, Value& item) {
  if (!after_.is_missing()) {
    item = std::exchange(after_, Value());
  } else if (!iterator_->next(rt, item)) {
    return false;
  }
  ++index_;
  before_ = std::exchange(current_, item);
  return true;
}

const Value& LoopContext::peek(Runtime& rt) {
  if (after_.is_missing() && !iterator_->next(rt, after_)) after_ = Value();
  return after_;
}

std::optional<int64_t> LoopContext::length(Runtime& rt) {
  if (length_ >= 0) return length_;
  if (const auto known = iterable_.is_missing() ? std::nullopt : jinja::length(rt, iterable_)) {
    length_ = *known;
    return length_;
  }
  // An iterator: what is left of it is read in advance.
  std::vector<Value> rest;
  for (Value item; iterator_->next(rt, item);) {
    rest.push_back(std::move(item));
    if ((rest.size() & 0xFFF) == 0) rt.heap.check(rest.size() * sizeof(Value));
  }
  length_ = static_cast<int64_t>(rest.size()) + index_ + 1 + (after_.is_missing() ? 0 : 1);
  iterator_ = jinja::iterate(rt, rt.heap.list(std::move(rest)));
  return length_;
}

TrackedText LoopContext::repr(Runtime&) const {
  return TrackedText::of_template(length_ < 0 ? fmt::format("<LoopContext {}>", index_ + 1)
                                              : fmt::format("<LoopContext {}/{}>", index_ + 1, length_));
}

Value LoopContext::cycle(Runtime&, Arguments& arguments) const {
  if (!arguments.named.empty()) fail("cycle() takes no keyword arguments");
  if (arguments.positional.empty()) fail("no items for cycling given");
  return arguments
      .positional[static_cast<size_t>(std::max<int64_t>(index_, 0)) % arguments.positional.size()];
}

Value LoopContext::changed(Runtime& rt, Arguments& arguments) {
  if (!arguments.named.empty()) fail("changed() takes no keyword arguments");
  Value now = rt.heap.tuple(std::move(arguments.positional));
  if (!last_changed_.is_missing() && jinja::equals(rt, last_changed_, now)) return Value::boolean(false);
  last_changed_ = std::move(now);
  return Value::boolean(true);
}

Value LoopContext::attribute(Runtime& rt, const Value& self, std::string_view name) {
  if (name == "index") return Value::integer(index_ + 1);
  if (name == "index0") return Value::integer(index_);
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(peek(rt).is_missing());
  if (name == "length") return Value::integer(*length(rt));
  if (name == "revindex") return Value::integer(*length(rt) - index_);
  if (name == "revindex0") return Value::integer(*length(rt) - index_ - 1);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") return index_ == 0 ? rt.heap.undefined("there is no previous item") : before_;
  if (name == "nextitem") return peek(rt).is_missing() ? rt.heap.undefined("there is no next item") : after_;
  if (name == "cycle") {
    return rt.heap.thing<Function>(
        "cycle",
        [](Runtime& runtime, const Value& loop, Arguments& arguments) {
          return loop.as<LoopContext>().cycle(runtime, arguments);
        },
        self);
  }
  if (name == "changed") {
    return rt.heap.thing<Function>(
        "changed",
        [](Runtime& runtime, const Value& loop, Arguments& arguments) {
          return loop.as<LoopContext>().changed(runtime, arguments);
        },
        self);
  }
  return {};
}

Value LoopContext::call(Runtime&, Arguments arguments) {
  const auto bound = bind("loop", arguments, {"iterable"}, 1);
  if (node_ == nullptr) fail("The loop must have the 'recursive' marker to be called recursively.");
  return interpreter_.run_recursive_loop(*node_, bound[0], outer_, context_, depth_ + 1);
}

IteratorPtr LoopContext::iterate(Runtime&, const Value& self) {
  return make_iterator([self](Runtime& rt, Value& out) {
    Value item;
    if (!self.as<LoopContext>().advance(rt, item)) return false;
    out = rt.heap.tuple({std::move(item), self});
    return true;
  });
}

// --- TestedIterator

bool TestedIterator::next(Runtime& rt, Value& out) {
  const Runtime::Nesting nesting(rt);
  if (!started_) {
    started_ = true;
    interpreter_.enter(node_.test_loads, frame_);
  }
  for (Value item; source_->next(rt, item);) {
    interpreter_.assign(node_.test_target, std::move(item), frame_);
    if (!truthy(rt, interpreter_.evaluate(*node_.test, frame_))) continue;
    out = Interpreter::value_of(rt, node_.test_target, frame_);
    return true;
  }
  return false;
}

// --- Blocks

Value TemplateReference::attribute(Runtime&, const Value&, std::string_view) { return {}; }

Value TemplateReference::item(Runtime& rt, const Value& key) {
  const BlockStmt* block = key.is_string() ? interpreter_.find_block(key.as<String>().text.view()) : nullptr;
  return block == nullptr ? Value() : rt.heap.thing<BlockReference>(interpreter_, *block, context_);
}

Value BlockReference::attribute(Runtime& rt, const Value&, std::string_view name) {
  if (name == "name") return rt.heap.string(block_.name);
  if (name == "super") return rt.heap.undefined("there is no parent block called '" + block_.name + "'.");
  return {};
}

Value BlockReference::call(Runtime&, Arguments arguments) {
  bind_positional("__call__", arguments, 0, 0);
  return interpreter_.call_block(block_, context_);
}

}  // namespace qwench::jinja
