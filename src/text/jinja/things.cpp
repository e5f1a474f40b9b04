#include "text/jinja/things.h"

#include <fmt/format.h>

#include "text/jinja/builtins.h"
#include "text/jinja/methods.h"

namespace qwench::jinja {

// --- Range

namespace {

int64_t range_count(int64_t start, int64_t stop, int64_t step) {
  // In unsigned arithmetic: the distance of two int64 always fits.
  const uint64_t distance =
      step > 0 ? (stop > start ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) : 0)
               : (start > stop ? static_cast<uint64_t>(start) - static_cast<uint64_t>(stop) : 0);
  const uint64_t width = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = distance / width + (distance % width != 0 ? 1 : 0);
  return count > uint64_t{1} << 62 ? int64_t{1} << 62 : static_cast<int64_t>(count);
}

}  // namespace

Range::Range(int64_t start, int64_t stop, int64_t step)
    : start_(start), stop_(stop), step_(step), count_(range_count(start, stop, step)) {}

TrackedText Range::repr(Runtime&) const {
  return TrackedText::of_template(step_ == 1 ? fmt::format("range({}, {})", start_, stop_)
                                             : fmt::format("range({}, {}, {})", start_, stop_, step_));
}

Value Range::attribute(Runtime& rt, const Value& self, std::string_view name) {
  if (name == "start") return Value::integer(start_);
  if (name == "stop") return Value::integer(stop_);
  if (name == "step") return Value::integer(step_);
  if (name == "index") {
    return rt.heap.thing<Function>(
        "index",
        [](Runtime&, const Value& range, Arguments& arguments) {
          const Value item = bind_positional("index", arguments, 1, 1)[0];
          const auto index = range.as<Range>().index_of(item);
          if (!index) fail("value is not in range");
          return Value::integer(*index);
        },
        self);
  }
  if (name == "count") {
    return rt.heap.thing<Function>(
        "count",
        [](Runtime&, const Value& range, Arguments& arguments) {
          const Value item = bind_positional("count", arguments, 1, 1)[0];
          return Value::integer(range.as<Range>().index_of(item) ? 1 : 0);
        },
        self);
  }
  return {};
}

Value Range::item(Runtime&, const Value& key) {
  if (!key.is_small_integer()) return {};
  const int64_t index = key.as_integer() < 0 ? key.as_integer() + count_ : key.as_integer();
  return index < 0 || index >= count_ ? Value() : Value::integer(at(index));
}

IteratorPtr Range::iterate(Runtime&, const Value& self) {
  return make_iterator([self, this, index = int64_t{0}](Runtime&, Value& out) mutable {
    if (index >= count_) return false;
    out = Value::integer(at(index++));
    return true;
  });
}

IteratorPtr Range::iterate_reversed(Runtime&, const Value& self) {
  return make_iterator([self, this, left = count_](Runtime&, Value& out) mutable {
    if (left == 0) return false;
    out = Value::integer(at(--left));
    return true;
  });
}

bool Range::equals(Runtime&, const Thing& other) const {
  const auto* range = dynamic_cast<const Range*>(&other);
  if (range == nullptr || range->count_ != count_) return false;
  return count_ == 0 || (range->start_ == start_ && (count_ == 1 || range->step_ == step_));
}

std::optional<int64_t> Range::index_of(const Value& item) const {
  int64_t wanted = 0;
  if (item.is_small_integer()) {
    wanted = item.as_integer();
  } else if (item.is(Type::real) &&
             compare_numbers(item, Value::integer(static_cast<int64_t>(
                                       std::max(-9.0e18, std::min(9.0e18, item.as_real()))))) == 0) {
    wanted = static_cast<int64_t>(item.as_real());
  } else {
    return std::nullopt;
  }
  const bool inside = step_ > 0 ? wanted >= start_ && wanted < stop_ : wanted <= start_ && wanted > stop_;
  if (!inside) return std::nullopt;
  const auto as_unsigned = [](int64_t i) { return static_cast<uint64_t>(i); };
  const uint64_t distance =
      step_ > 0 ? as_unsigned(wanted) - as_unsigned(start_) : as_unsigned(start_) - as_unsigned(wanted);
  const uint64_t width = step_ > 0 ? as_unsigned(step_) : 0 - as_unsigned(step_);
  if (distance % width != 0) return std::nullopt;
  return static_cast<int64_t>(distance / width);
}

// --- Generator

TrackedText Generator::repr(Runtime&) const {
  return TrackedText::of_template(fmt::format("<{} object>", type_));
}

// --- DictView

namespace {

Value view_item(Runtime& rt, const DictView& view, size_t index) {
  const Dict::Entry& entry = view.entries()[index];
  if (view.kind() == DictView::Kind::keys) return entry.key;
  if (view.kind() == DictView::Kind::values) return entry.value;
  Value pair = rt.heap.tuple({entry.key, entry.value});
  return pair.mark_input(view.dict().from_input());
}

}  // namespace

std::string DictView::type_name() const {
  return kind_ == Kind::keys ? "dict_keys" : (kind_ == Kind::values ? "dict_values" : "dict_items");
}

TrackedText DictView::repr(Runtime& rt) const {
  TrackedText out = TrackedText::of_template(type_name() + "([");
  for (size_t i = 0; i < entries().size(); ++i) {
    if (i != 0) out.append(", ", dict_.from_input());
    out.append(jinja::repr(rt, view_item(rt, *this, i)));
    rt.check_size(out.size());
  }
  out.append("])", false);
  return out;
}

IteratorPtr DictView::iterate(Runtime&, const Value& self) {
  return make_iterator([self, this, index = size_t{0}](Runtime& rt, Value& out) mutable {
    if (index >= entries().size()) return false;
    out = view_item(rt, *this, index++);
    return true;
  });
}

IteratorPtr DictView::iterate_reversed(Runtime&, const Value& self) {
  return make_iterator([self, this, left = entries().size()](Runtime& rt, Value& out) mutable {
    if (left == 0) return false;
    out = view_item(rt, *this, --left);
    return true;
  });
}

bool DictView::equals(Runtime& rt, const Thing& other) const {
  const auto* view = dynamic_cast<const DictView*>(&other);
  if (view == nullptr || kind_ == Kind::values || view->kind_ != kind_) return false;
  if (view->entries().size() != entries().size()) return false;
  for (const auto& [key, value] : entries()) {
    const Value* match = view->dict_.as<Dict>().find(key);
    if (match == nullptr || (kind_ == Kind::items && !jinja::equals(rt, value, *match))) return false;
  }
  return true;
}

std::optional<bool> contains_directly(Runtime& rt, const Thing& thing, const Value& item) {
  if (const auto* range = dynamic_cast<const Range*>(&thing)) return range->index_of(item).has_value();
  const auto* view = dynamic_cast<const DictView*>(&thing);
  if (view == nullptr || view->kind() == DictView::Kind::values) return std::nullopt;
  if (view->kind() == DictView::Kind::keys) return view->dict().as<Dict>().find(item) != nullptr;
  if (!item.is(Type::tuple) || item.as<Sequence>().items.size() != 2) return false;
  const Value* value = view->dict().as<Dict>().find(item.as<Sequence>().items[0]);
  return value != nullptr && equals(rt, *value, item.as<Sequence>().items[1]);
}

// --- Function

TrackedText Function::repr(Runtime&) const {
  if (is_type_) return TrackedText::of_template("<class '" + name_ + "'>");
  return TrackedText::of_template(self_.is_missing() ? "<function " + name_ + ">"
                                                     : "<built-in method " + name_ + ">");
}

Value Function::attribute(Runtime& rt, const Value&, std::string_view name) {
  if (is_type_ && name_ == "dict" && name == "fromkeys")
    return rt.heap.thing<Function>("fromkeys", dict_from_keys);
  return {};
}

Value Function::call(Runtime& rt, Arguments arguments) {
  bool input = touches_input(self_);
  for (const Value& each : arguments.positional) input = input || touches_input(each);
  for (const auto& [name, each] : arguments.named) input = input || touches_input(each);
  charge_operands(rt, self_, arguments);
  Value result = function_(rt, self_, arguments);
  return input && !result.is_string() ? result.mark_input() : result;
}

bool Function::equals(Runtime&, const Thing& other) const {
  const auto* function = dynamic_cast<const Function*>(&other);
  return function != nullptr && function->function_ == function_ && function->self_.same_object(self_);
}

// --- Namespace

Namespace::Namespace(Heap& heap, Value attributes) : Collectable(heap), attributes_(std::move(attributes)) {}

void Namespace::check_name(std::string_view name) {
  if (name.empty() || name[0] != '_') return;
  fail(TemplateErrorKind::security,
       fmt::format(
           "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{}'. Please "
           "rename the attribute.",
           name));
}

TrackedText Namespace::repr(Runtime& rt) const {
  TrackedText out = TrackedText::of_template("<Namespace ");
  out.append(jinja::repr(rt, attributes_));
  out.append(">", false);
  return out;
}

Value Namespace::attribute(Runtime&, const Value&, std::string_view name) {
  const Value* value = attributes_.as<Dict>().find(name);
  return value == nullptr ? Value() : *value;
}

void Namespace::set(Runtime& rt, const std::string& name, Value value) {
  check_name(name);
  if (attributes_.as<Dict>().find(name) == nullptr) rt.heap.charge(*this, 2 * sizeof(Value) + 16);
  attributes_.as<Dict>().set(rt.heap.string(name), std::move(value));
}

void Namespace::surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>&) {
  values.push_back(std::move(attributes_));
}

// --- Cycler and joiner

Value Cycler::next() {
  const Value current = items_[position_];
  position_ = (position_ + 1) % items_.size();
  return current;
}

Value Cycler::attribute(Runtime& rt, const Value& self, std::string_view name) {
  if (name == "current") return items_[position_];
  if (name == "pos") return Value::integer(static_cast<int64_t>(position_));
  if (name == "items") return rt.heap.tuple(items_);
  if (name == "next") {
    return rt.heap.thing<Function>(
        "next",
        [](Runtime&, const Value& cycler, Arguments& arguments) {
          bind_positional("next", arguments, 0, 0);
          return cycler.as<Cycler>().next();
        },
        self);
  }
  if (name == "reset") {
    return rt.heap.thing<Function>(
        "reset",
        [](Runtime&, const Value& cycler, Arguments& arguments) {
          bind_positional("reset", arguments, 0, 0);
          cycler.as<Cycler>().reset();
          return Value::none();
        },
        self);
  }
  return {};
}

Value Joiner::attribute(Runtime&, const Value&, std::string_view name) {
  if (name == "sep") return separator_;
  if (name == "used") return Value::boolean(used_);
  return {};
}

Value Joiner::call(Runtime& rt, Arguments arguments) {
  bind_positional("__call__", arguments, 0, 0);
  if (used_) return separator_;
  used_ = true;
  return rt.heap.string("");
}

}  // namespace qwench::jinja
