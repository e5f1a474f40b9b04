#include "text/jinja/interpreter.h"

#include <fmt/format.h>

#include "text/jinja/callables.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {

class Interpreter::CallDepth {
 public:
  explicit CallDepth(Interpreter& interpreter) : interpreter_(interpreter), nesting_(interpreter.rt_) {
    if (interpreter_.call_depth_ >= interpreter_.rt_.limits().max_depth) {
      fail(TemplateErrorKind::limit,
           fmt::format("more than {} macro calls and recursive loops inside each other",
                       interpreter_.rt_.limits().max_depth));
    }
    ++interpreter_.call_depth_;
  }
  ~CallDepth() { --interpreter_.call_depth_; }
  CallDepth(const CallDepth&) = delete;
  CallDepth& operator=(const CallDepth&) = delete;

 private:
  Interpreter& interpreter_;
  Runtime::Nesting nesting_;
};

Interpreter::Interpreter(Runtime& rt, const Tree& tree, Context::Variables variables)
    : rt_(rt), tree_(tree), context_(std::make_shared<Context>(rt.heap, std::move(variables))), output_(rt) {}

TrackedText Interpreter::run() {
  const Frame frame{std::make_shared<Activation>(rt_.heap, tree_.slots, nullptr), context_, &output_};
  if (tree_.self_slot >= 0) {
    frame.activation->slots[static_cast<size_t>(tree_.self_slot)] =
        rt_.heap.thing<TemplateReference>(*this, context_);
  }
  enter(tree_.loads, frame);
  execute(tree_.body, frame);
  return output_.take();
}

// --- Scopes

void Interpreter::enter(const ScopeLoads& loads, const Frame& frame) const {
  for (const ScopeLoad& load : loads) {
    Value& slot = frame.activation->slots[static_cast<size_t>(load.slot)];
    switch (load.source) {
      case ScopeLoad::Source::context:
        slot = frame.context->find(load.name);
        break;
      case ScopeLoad::Source::alias:
        slot = Value(frame.variable(load.alias));
        break;
      case ScopeLoad::Source::undefined:
        slot = Value();
        break;
    }
  }
}

void Interpreter::leave(const ScopeLoads& loads, const Frame& frame) const {
  for (const ScopeLoad& load : loads) frame.activation->slots[static_cast<size_t>(load.slot)] = Value();
}

void Interpreter::publish(const std::vector<Export>& exports, const Frame& frame) const {
  for (const Export& each : exports) frame.context->set(each.name, frame.variable(each.variable));
}

void Interpreter::assign(const Target& target, Value value, const Frame& frame) {
  switch (target.kind) {
    case Target::Kind::name:
      frame.variable(target.variable) = std::move(value);
      return;
    case Target::Kind::attribute: {
      rt_.position = target.position;
      const Value& object = frame.variable(target.variable);
      auto* space = object.is(Type::thing) ? dynamic_cast<Namespace*>(&object.as<Thing>()) : nullptr;
      if (space == nullptr) fail("cannot assign attribute on non-namespace object");
      return space->set(rt_, target.attribute, std::move(value));
    }
    case Target::Kind::tuple:
      break;
  }
  rt_.position = target.position;
  if (!is_iterable(rt_, value)) fail("cannot unpack non-iterable " + type_name(value) + " object");
  const IteratorPtr iterator = iterate(rt_, value);
  std::vector<Value> items;
  for (Value item; items.size() <= target.items.size() && iterator->next(rt_, item);)
    items.push_back(std::move(item));
  if (items.size() > target.items.size())
    fail(fmt::format("too many values to unpack (expected {})", target.items.size()));
  if (items.size() < target.items.size()) {
    fail(fmt::format("not enough values to unpack (expected {}, got {})", target.items.size(), items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.items[i], std::move(items[i]), frame);
}

Value Interpreter::value_of(Runtime& rt, const Target& target, const Frame& frame) {
  if (target.kind != Target::Kind::tuple) return frame.variable(target.variable);
  std::vector<Value> items;
  for (const Target& item : target.items) items.push_back(value_of(rt, item, frame));
  return rt.heap.tuple(std::move(items));
}

// --- Output

void Interpreter::print(const Value& value, Output& out) {
  if (rt_.autoescape) return out.append(escape_html(rt_, value));
  if (value.is_string()) return out.append(value.as<String>().text);
  out.append(to_text(rt_, value));
}

/// The result of a call block or filter block: it must be text, and is not escaped again.
void Interpreter::write(const Value& text, Output& out) {
  if (!text.is_string())
    return out.refuse("sequence item: expected str instance, " + type_name(text) + " found");
  out.append(text.as<String>().text);
}

Value Interpreter::text_value(TrackedText text) { return rt_.heap.string(std::move(text), rt_.autoescape); }

// --- Statements

Interpreter::Flow Interpreter::execute(const Body& body, const Frame& frame) {
  for (const StmtPtr& stmt : body) {
    const Flow flow = execute(*stmt, frame);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt, const Frame& frame) {
  rt_.step();
  rt_.position = stmt.position;
  switch (stmt.kind) {
    case StmtKind::text:
      frame.out->append(static_cast<const TextStmt&>(stmt).text);
      break;
    case StmtKind::output: {
      const Value value = evaluate(*static_cast<const OutputStmt&>(stmt).value, frame);
      print(value, *frame.out);
      break;
    }
    case StmtKind::if_:
      return execute_if(static_cast<const IfStmt&>(stmt), frame);
    case StmtKind::for_:
      return execute_for(static_cast<const ForStmt&>(stmt), frame);
    case StmtKind::set: {
      const auto& node = static_cast<const SetStmt&>(stmt);
      if (node.target.kind == Target::Kind::attribute) {
        const Value& object = frame.variable(node.target.variable);
        if (!object.is(Type::thing) || dynamic_cast<Namespace*>(&object.as<Thing>()) == nullptr) {
          fail("cannot assign attribute on non-namespace object");
        }
      }
      assign(node.target, evaluate(*node.value, frame), frame);
      publish(node.exports, frame);
      break;
    }
    case StmtKind::set_block:
      return execute_set_block(static_cast<const SetBlockStmt&>(stmt), frame);
    case StmtKind::with:
      return execute_with(static_cast<const WithStmt&>(stmt), frame);
    case StmtKind::macro:
      execute_macro(static_cast<const MacroStmt&>(stmt), frame);
      break;
    case StmtKind::call_block:
      execute_call_block(static_cast<const CallBlockStmt&>(stmt), frame);
      break;
    case StmtKind::generation:
      execute_generation(static_cast<const GenerationStmt&>(stmt), frame);
      break;
    case StmtKind::filter_block:
      return execute_filter_block(static_cast<const FilterBlockStmt&>(stmt), frame);
    case StmtKind::block:
      execute_block(static_cast<const BlockStmt&>(stmt), frame);
      break;
    case StmtKind::autoescape:
      return execute_autoescape(static_cast<const AutoescapeStmt&>(stmt), frame);
    case StmtKind::break_:
      return Flow::break_;
    case StmtKind::continue_:
      return Flow::continue_;
    case StmtKind::load:
      fail("no loader for this environment specified: a chat template cannot load others");
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute_if(const IfStmt& node, const Frame& frame) {
  const Runtime::Nesting nesting(rt_);
  for (const auto& [condition, body] : node.branches) {
    if (truthy(rt_, evaluate(*condition, frame))) return execute(body, frame);
  }
  return execute(node.otherwise, frame);
}

Interpreter::Flow Interpreter::execute_for(const ForStmt& node, const Frame& frame) {
  const Value iterable = evaluate(*node.iterable, frame);
  if (!node.recursive) return run_loop(node, iterable, frame, frame.activation, 0);
  print(run_recursive_loop(node, iterable, frame.activation, frame.context, 0), *frame.out);
  return Flow::normal;
}

Value Interpreter::run_recursive_loop(const ForStmt& node, const Value& iterable,
                                      const std::shared_ptr<Activation>& outer,
                                      const std::shared_ptr<Context>& context, int depth) {
  const CallDepth call_depth(*this);
  Output out(rt_);
  const Frame frame{std::make_shared<Activation>(rt_.heap, node.slots, outer), context, &out};
  run_loop(node, iterable, frame, outer, depth);
  return text_value(out.take());
}

Interpreter::Flow Interpreter::run_loop(const ForStmt& node, const Value& iterable, const Frame& frame,
                                        const std::shared_ptr<Activation>& outer, int depth) {
  const Runtime::Nesting nesting(rt_);
  rt_.position = node.position;
  IteratorPtr iterator = iterate(rt_, iterable);
  if (node.test != nullptr) {
    Frame test_frame{std::make_shared<Activation>(rt_.heap, node.test_slots, outer), frame.context, nullptr};
    iterator = std::make_shared<TestedIterator>(*this, node, std::move(iterator), std::move(test_frame));
  }
  Value loop;
  if (node.extended) {
    loop = rt_.heap.thing<LoopContext>(*this, node.test != nullptr ? Value() : iterable, iterator,
                                       node.recursive ? &node : nullptr, outer, frame.context, depth);
  }
  // The else branch runs unless some pass reaches the end of the body: break and continue skip that, too.
  bool completed = false;
  for (Value item; node.extended ? loop.as<LoopContext>().advance(rt_, item) : iterator->next(rt_, item);) {
    rt_.step();
    assign(node.target, std::move(item), frame);
    if (node.extended) frame.variable(node.loop_variable) = loop;
    enter(node.body_loads, frame);
    const Flow flow = execute(node.body, frame);
    if (flow == Flow::break_) break;
    if (flow == Flow::normal) completed = true;
    rt_.position = node.position;
  }
  leave(node.body_loads, frame);
  if (node.extended) frame.variable(node.loop_variable) = Value();
  if (!node.has_else || completed) return Flow::normal;
  enter(node.else_loads, frame);
  const Flow flow = execute(node.otherwise, frame);
  leave(node.else_loads, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_with(const WithStmt& node, const Frame& frame) {
  const Runtime::Nesting nesting(rt_);
  enter(node.loads, frame);
  for (size_t i = 0; i < node.targets.size(); ++i)
    assign(node.targets[i], evaluate(*node.values[i], frame), frame);
  const Flow flow = execute(node.body, frame);
  leave(node.loads, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_autoescape(const AutoescapeStmt& node, const Frame& frame) {
  const Runtime::Nesting nesting(rt_);
  enter(node.loads, frame);
  const bool before = rt_.autoescape;
  rt_.autoescape = truthy(rt_, evaluate(*node.value, frame));
  const Flow flow = execute(node.body, frame);
  rt_.autoescape = before;
  leave(node.loads, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_filter_block(const FilterBlockStmt& node, const Frame& frame) {
  const Runtime::Nesting nesting(rt_);
  enter(node.loads, frame);
  Output captured(rt_);
  const Flow flow = execute(node.body, {frame.activation, frame.context, &captured});
  if (flow == Flow::normal) {
    const Value content = text_value(captured.take());
    const Value* const before = std::exchange(block_content_, &content);
    const Value filtered = evaluate(*node.filter, frame);
    block_content_ = before;
    write(filtered, *frame.out);
  }
  leave(node.loads, frame);
  return flow;
}

Interpreter::Flow Interpreter::execute_set_block(const SetBlockStmt& node, const Frame& frame) {
  const Runtime::Nesting nesting(rt_);
  enter(node.loads, frame);
  Output captured(rt_);
  const Flow flow = execute(node.body, {frame.activation, frame.context, &captured});
  if (flow == Flow::normal) {
    Value content = text_value(captured.take());
    if (node.filter != nullptr) {
      const Value* const before = std::exchange(block_content_, &content);
      Value filtered = evaluate(*node.filter, frame);
      block_content_ = before;
      content = rt_.autoescape ? rt_.heap.string(to_text(rt_, filtered), true) : std::move(filtered);
    }
    assign(node.target, std::move(content), frame);
    publish(node.exports, frame);
  }
  leave(node.loads, frame);
  return flow;
}

// --- Macros and blocks

void Interpreter::execute_macro(const MacroStmt& node, const Frame& frame) {
  Value macro = rt_.heap.thing<Macro>(*this, node.macro, &node.name, frame.activation, frame.context);
  if (node.exported) frame.context->set(node.name, macro);
  frame.variable(node.variable) = std::move(macro);
}

void Interpreter::execute_call_block(const CallBlockStmt& node, const Frame& frame) {
  const Value caller = rt_.heap.thing<Macro>(*this, node.macro, nullptr, frame.activation, frame.context);
  const Value result = call_with(static_cast<const CallExpr&>(*node.call), frame, &caller);
  write(result, *frame.out);
}

void Interpreter::execute_generation(const GenerationStmt& node, const Frame& frame) {
  const Value body = call_macro(node.macro, nullptr, frame.activation, frame.context, {});
  const size_t begin = output_.count_written();
  generation_spans_.push_back({begin, begin + body.as<String>().length});
  frame.out->append(body.as<String>().text);
}

Value Interpreter::call_macro(const MacroBody& macro, const std::string* name,
                              const std::shared_ptr<Activation>& outer,
                              const std::shared_ptr<Context>& context, Arguments arguments) {
  const CallDepth depth(*this);
  const auto shown = [&] { return name == nullptr ? std::string("None") : "'" + *name + "'"; };
  const size_t count = macro.parameters.size();
  auto activation = std::make_shared<Activation>(rt_.heap, macro.slots, outer);
  Output out(rt_);
  const Frame frame{activation, context, &out};
  const auto take_named = [&](std::string_view wanted) {
    for (auto& named : arguments.named) {
      if (named.first != wanted || named.second.is_missing()) continue;
      return std::exchange(named.second, Value());
    }
    return Value();
  };
  const size_t given = std::min(arguments.positional.size(), count);
  for (size_t i = 0; i < count; ++i) {
    frame.variable(macro.parameter_variables[i]) =
        i < given ? arguments.positional[i] : take_named(macro.parameters[i]);
  }
  if (macro.caller_slot >= 0) {
    Value caller = take_named("caller");
    if (caller.is_missing() || caller.is_none()) caller = rt_.heap.undefined("No caller defined");
    activation->slots[static_cast<size_t>(macro.caller_slot)] = std::move(caller);
  }
  std::erase_if(arguments.named, [](const auto& named) { return named.second.is_missing(); });
  if (macro.kwargs_slot >= 0) {
    auto rest = std::make_shared<Dict>();
    for (auto& [key, value] : arguments.named) rest->set(rt_.heap.string(key), std::move(value));
    activation->slots[static_cast<size_t>(macro.kwargs_slot)] = rt_.heap.dict(std::move(rest));
  } else if (!arguments.named.empty()) {
    fail(fmt::format("macro {} takes no keyword argument '{}'", shown(), arguments.named[0].first));
  }
  if (macro.varargs_slot >= 0) {
    const auto first = arguments.positional.begin() + static_cast<std::ptrdiff_t>(given);
    activation->slots[static_cast<size_t>(macro.varargs_slot)] =
        rt_.heap.tuple(std::vector<Value>(first, arguments.positional.end()));
  } else if (arguments.positional.size() > count) {
    fail(fmt::format("macro {} takes not more than {} argument(s)", shown(), count));
  }
  enter(macro.loads, frame);
  for (size_t i = 0; i < count; ++i) {
    if (!frame.variable(macro.parameter_variables[i]).is_missing()) continue;
    const size_t without_default = count - macro.defaults.size();
    Value value =
        i < without_default
            ? rt_.heap.undefined(fmt::format("parameter '{}' was not provided", macro.parameters[i]))
            : evaluate(*macro.defaults[i - without_default], frame);
    frame.variable(macro.parameter_variables[i]) = std::move(value);
  }
  execute(macro.body, frame);
  return text_value(out.take());
}

const BlockStmt* Interpreter::find_block(std::string_view name) const {
  for (const BlockStmt* block : tree_.blocks) {
    if (block->name == name) return block;
  }
  return nullptr;
}

void Interpreter::execute_block(const BlockStmt& node, const Frame& frame) {
  if (node.required) fail("Required block '" + node.name + "' not found");
  std::shared_ptr<Context> context = frame.context;
  if (node.scoped) {
    Context::Variables variables = context->variables();
    rt_.step(variables.size());
    for (const Export& each : node.visible) {
      const Value& value = frame.variable(each.variable);
      if (!value.is_missing()) variables[each.name] = value;
    }
    context = std::make_shared<Context>(rt_.heap, std::move(variables));
  }
  run_block(node, context, *frame.out);
}

Value Interpreter::call_block(const BlockStmt& block, const std::shared_ptr<Context>& context) {
  Output out(rt_);
  run_block(block, context, out);
  return text_value(out.take());
}

void Interpreter::run_block(const BlockStmt& block, const std::shared_ptr<Context>& context, Output& out) {
  const CallDepth depth(*this);
  const Frame frame{std::make_shared<Activation>(rt_.heap, block.slots, nullptr), context, &out};
  const auto slot = [&](int index) -> Value& { return frame.activation->slots[static_cast<size_t>(index)]; };
  if (block.self_slot >= 0) slot(block.self_slot) = rt_.heap.thing<TemplateReference>(*this, context);
  if (block.super_slot >= 0)
    slot(block.super_slot) = rt_.heap.undefined("there is no parent block called '" + block.name + "'.");
  enter(block.loads, frame);
  execute(block.body, frame);
}

}  // namespace qwench::jinja
