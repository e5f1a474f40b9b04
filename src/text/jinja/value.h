#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/bigint.h"
#include "text/jinja/error.h"
#include "text/jinja/tracked_text.h"

namespace qwench::jinja {

class Heap;
class Runtime;
class Value;

enum class Type : uint8_t {
  missing,    ///< no value at all; never seen by a template
  undefined,  ///< Jinja's Undefined
  none,
  boolean,
  integer,      ///< within 64 bits
  big_integer,  ///< beyond 64 bits
  real,
  string,
  list,
  tuple,
  dict,
  thing,  ///< everything else: ranges, iterators, functions, macros, namespaces, the loop
};

/// What a Value points to. Its memory is charged to a Heap, if it has one (the constants of a template have
/// none).
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

 private:
  friend class Heap;
  Heap* heap_ = nullptr;
  size_t charged_ = 0;
};

/// A value of the template language: small ones inline, the rest shared and immutable (namespaces aside), so
/// that copies are cheap.
class Value {
 public:
  Value() = default;
  Value(Type type, std::shared_ptr<Object> object) : type_(type), object_(std::move(object)) {}
  static Value none() { return Value(Type::none); }
  static Value boolean(bool b) {
    Value value(Type::boolean);
    value.integer_ = b ? 1 : 0;
    return value;
  }
  static Value integer(int64_t i) {
    Value value(Type::integer);
    value.integer_ = i;
    return value;
  }
  static Value real(double d) {
    Value value(Type::real);
    value.real_ = d;
    return value;
  }

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_missing() const { return type_ == Type::missing; }
  bool is_undefined() const { return type_ == Type::undefined; }
  bool is_none() const { return type_ == Type::none; }
  bool is_string() const { return type_ == Type::string; }
  bool is_sequence() const { return type_ == Type::list || type_ == Type::tuple; }
  /// A number whose value is in 64 bits, booleans included as in Python.
  bool is_small_integer() const { return type_ == Type::integer || type_ == Type::boolean; }
  bool is_integer() const { return is_small_integer() || type_ == Type::big_integer; }
  bool is_number() const { return is_integer() || type_ == Type::real; }

  int64_t as_integer() const { return integer_; }  // integer and boolean
  double as_real() const { return real_; }
  template <typename T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  const std::shared_ptr<Object>& object() const { return object_; }
  std::shared_ptr<Object> take_object() && { return std::move(object_); }

  /// For numbers, booleans and none, and for the brackets of containers: did this come from the input?
  /// Strings know it byte by byte.
  bool from_input() const { return from_input_; }
  Value& mark_input(bool input = true) {
    from_input_ = from_input_ || input;
    return *this;
  }

  bool same_object(const Value& other) const { return type_ == other.type_ && object_ == other.object_; }

 private:
  explicit Value(Type type) : type_(type) {}

  Type type_ = Type::missing;
  bool from_input_ = false;
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

/// Lets go of values one after the other, however deep they hold each other: destructors of what holds values
/// use it, so that a long chain is not destroyed by recursion.
void release(std::vector<Value>&& values);
void release(std::shared_ptr<void> object);

struct Undefined final : Object {
  Undefined(TemplateErrorKind k, std::string m) : kind(k), message(std::move(m)) {}
  TemplateErrorKind kind;
  std::string message;  ///< the error's text when it is used
};

struct BigInteger final : Object {
  explicit BigInteger(BigInt v) : value(std::move(v)) {}
  BigInt value;
};

struct String final : Object {
  String(TrackedText t, bool is_markup);
  bool ascii() const { return length == text.size(); }
  TrackedText text;
  size_t length;  ///< in code points
  bool markup;    ///< safe to print where output is escaped
};

struct Sequence final : Object {
  explicit Sequence(std::vector<Value> v) : items(std::move(v)) {}
  ~Sequence() override { release(std::move(items)); }
  std::vector<Value> items;
  bool group = false;  ///< a tuple of groupby(): item 0 is also .grouper, item 1 .list
};

/// Python's dict: insertion order, any hashable key.
class Dict final : public Object {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  ~Dict() override;
  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;  ///< fails on unhashable keys
  void set(Value key, Value value);           ///< the first key object stays, as in Python

 private:
  template <typename Same>
  size_t index_of(size_t hash, Same same) const;
  void add_to_table(size_t hash, size_t index);

  std::vector<Entry> entries_;
  std::vector<size_t> hashes_;
  std::vector<uint32_t> table_;  // open addressing, entry + 1; unused while there are few entries
};

/// Python's hash(): equal values have equal hashes. Fails on unhashable ones.
size_t hash_value(const Value& value);
/// Equality of keys: Python's == for hashable values, without side effects.
bool same_key(const Value& a, const Value& b);

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Iterator {
 public:
  Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;
  virtual ~Iterator() = default;
  /// The next value in `out`, or false.
  virtual bool next(Runtime& rt, Value& out) = 0;
};
using IteratorPtr = std::shared_ptr<Iterator>;

/// Values with behaviour of their own.
class Thing : public Object {
 public:
  virtual std::string type_name() const = 0;  ///< as Python's type(x).__name__
  virtual TrackedText repr(Runtime& rt) const;
  /// Python's getattr; missing when there is no such attribute.
  virtual Value attribute(Runtime& rt, const Value& self, std::string_view name);
  /// Python's x[key]; missing for a key that is not there or a type without items.
  virtual Value item(Runtime& rt, const Value& key);
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& rt, Arguments arguments);
  virtual std::optional<int64_t> length(Runtime& rt);                    ///< nullopt: has no len()
  virtual IteratorPtr iterate(Runtime& rt, const Value& self);           ///< null: not iterable
  virtual IteratorPtr iterate_reversed(Runtime& rt, const Value& self);  ///< null: not reversible
  virtual bool equals(Runtime& rt, const Thing& other) const;
  virtual bool truthy(Runtime& rt);
  virtual size_t hash() const;
};

/// Something that can take part in a reference cycle; the heap empties those that are left after a rendering.
class Collectable {
 public:
  explicit Collectable(Heap& heap);
  Collectable(const Collectable&) = delete;
  Collectable& operator=(const Collectable&) = delete;
  virtual ~Collectable();
  /// Moves out all the values it holds.
  virtual void surrender(std::vector<Value>& values, std::vector<std::shared_ptr<Collectable>>& others) = 0;

 private:
  friend class Heap;
  Heap* heap_;
  Collectable* previous_ = nullptr;
  Collectable* next_ = nullptr;
};

/// Makes values and counts the memory of those alive. One a rendering; it must outlive its values.
class Heap {
 public:
  explicit Heap(size_t limit) : limit_(limit) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() { collect(); }

  Value string(TrackedText text, bool markup = false);
  Value string(std::string_view template_text) {
    return string(TrackedText::of_template(std::string(template_text)));
  }
  Value integer(const BigInt& value);  ///< small again where it fits
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value dict(std::shared_ptr<Dict> dict);
  Value undefined(std::string message, TemplateErrorKind kind = TemplateErrorKind::undefined);
  template <typename T, typename... Args>
  Value thing(Args&&... args) {
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    charge(*object, sizeof(T) + 64);
    return Value(Type::thing, std::move(object));
  }

  /// Accounts `bytes` (more) to the object; fails when the limit is passed.
  void charge(Object& object, size_t bytes);
  /// Fails when `bytes` more would pass the limit.
  void check(size_t bytes) const;
  /// Accounts memory outside of values, until let_go() of as much.
  void hold(size_t bytes) {
    check(bytes);
    live_ += bytes;
  }
  void let_go(size_t bytes) { live_ -= bytes; }
  void collect();

 private:
  friend class Object;
  friend class Collectable;
  size_t limit_;
  size_t live_ = 0;
  Collectable* first_ = nullptr;
};

}  // namespace qwench::jinja
