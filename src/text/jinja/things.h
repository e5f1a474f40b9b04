#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/jinja/operations.h"

namespace qwench::jinja {

// The Things that are not tied to the interpreter: ranges, iterators, views, functions, and Jinja's helpers.

class Range final : public Thing {
 public:
  Range(int64_t start, int64_t stop, int64_t step);
  std::string type_name() const override { return "range"; }
  TrackedText repr(Runtime& rt) const override;
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  Value item(Runtime& rt, const Value& key) override;
  std::optional<int64_t> length(Runtime&) override { return count_; }
  IteratorPtr iterate(Runtime& rt, const Value& self) override;
  IteratorPtr iterate_reversed(Runtime& rt, const Value& self) override;
  bool equals(Runtime& rt, const Thing& other) const override;
  std::optional<int64_t> index_of(const Value& item) const;
  int64_t at(int64_t index) const { return start_ + index * step_; }
  int64_t step() const { return step_; }

 private:
  int64_t start_, stop_, step_, count_;
};

/// An iterator in a variable.
class Generator final : public Thing {
 public:
  Generator(IteratorPtr iterator, const char* type) : iterator_(std::move(iterator)), type_(type) {}
  ~Generator() override { release(std::move(iterator_)); }
  std::string type_name() const override { return type_; }
  TrackedText repr(Runtime& rt) const override;
  IteratorPtr iterate(Runtime&, const Value&) override { return iterator_; }
  bool truthy(Runtime&) override { return true; }

 private:
  IteratorPtr iterator_;
  const char* type_;
};

/// dict.keys(), .values() and .items().
class DictView final : public Thing {
 public:
  enum class Kind : uint8_t { keys, values, items };
  DictView(Value dict, Kind kind) : dict_(std::move(dict)), kind_(kind) {}
  ~DictView() override { release(std::move(dict_).take_object()); }
  std::string type_name() const override;
  TrackedText repr(Runtime& rt) const override;
  std::optional<int64_t> length(Runtime&) override { return static_cast<int64_t>(entries().size()); }
  IteratorPtr iterate(Runtime& rt, const Value& self) override;
  IteratorPtr iterate_reversed(Runtime& rt, const Value& self) override;
  bool equals(Runtime& rt, const Thing& other) const override;
  Kind kind() const { return kind_; }
  const Value& dict() const { return dict_; }
  const std::vector<Dict::Entry>& entries() const { return dict_.as<Dict>().entries(); }

 private:
  Value dict_;
  Kind kind_;
};

using NativeFunction = Value (*)(Runtime&, const Value& self, Arguments& arguments);

/// A function of the language: a global, or the method of a value.
class Function final : public Thing {
 public:
  Function(std::string name, NativeFunction function, Value self = {}, bool is_type = false)
      : name_(std::move(name)), function_(function), self_(std::move(self)), is_type_(is_type) {}
  ~Function() override { release(std::move(self_).take_object()); }
  std::string type_name() const override { return is_type_ ? "type" : "builtin_function_or_method"; }
  TrackedText repr(Runtime& rt) const override;
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& rt, Arguments arguments) override;
  bool equals(Runtime& rt, const Thing& other) const override;

 private:
  std::string name_;
  NativeFunction function_;
  Value self_;
  bool is_type_;
};

/// namespace(): the only value a template can change.
class Namespace final : public Thing, public Collectable {
 public:
  Namespace(Heap& heap, Value attributes);
  std::string type_name() const override { return "Namespace"; }
  TrackedText repr(Runtime& rt) const override;
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  void set(Runtime& rt, const std::string& name, Value value);
  void surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) override;
  /// Chat templates may not keep names that begin with an underscore in a namespace.
  static void check_name(std::string_view name);

 private:
  Value attributes_;  // a dict of its own
};

class Cycler final : public Thing {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  ~Cycler() override { release(std::move(items_)); }
  std::string type_name() const override { return "Cycler"; }
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  Value next();
  void reset() { position_ = 0; }

 private:
  std::vector<Value> items_;
  size_t position_ = 0;
};

class Joiner final : public Thing {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  ~Joiner() override { release(std::move(separator_).take_object()); }
  std::string type_name() const override { return "Joiner"; }
  Value attribute(Runtime& rt, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& rt, Arguments arguments) override;

 private:
  Value separator_;
  bool used_ = false;
};

/// `item in thing` where it takes no iteration.
std::optional<bool> contains_directly(Runtime& rt, const Thing& thing, const Value& item);

/// An iterator over a function that gives the next value.
class CallbackIterator final : public Iterator {
 public:
  using Callback = std::function<bool(Runtime&, Value&)>;
  explicit CallbackIterator(Callback callback) : callback_(std::move(callback)) {}
  bool next(Runtime& rt, Value& out) override {
    const Runtime::Nesting nesting(rt);
    rt.step();
    return callback_(rt, out);
  }

 private:
  Callback callback_;
};

inline IteratorPtr make_iterator(CallbackIterator::Callback callback) {
  return std::make_shared<CallbackIterator>(std::move(callback));
}

}  // namespace qwench::jinja
