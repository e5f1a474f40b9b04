#include "text/jinja/value.h"

#include <cmath>
#include <functional>
#include <limits>

#include "text/jinja/unicode.h"

namespace qwench::jinja {

Object::~Object() {
  if (heap_ != nullptr) heap_->live_ -= charged_;
}

void release(std::shared_ptr<void> object) {
  // A chain of containers would be destroyed by recursion as deep as the chain. Past a few levels the rest is
  // put aside, and the outermost call lets go of it in a loop.
  constexpr int kDirectLevels = 50;
  thread_local int level = 0;
  thread_local std::vector<std::shared_ptr<void>> aside;
  if (object == nullptr) return;
  if (level >= kDirectLevels) {
    aside.push_back(std::move(object));
    return;
  }
  ++level;
  object.reset();
  if (level == 1) {
    while (!aside.empty()) {
      std::shared_ptr<void> last = std::move(aside.back());
      aside.pop_back();
      last.reset();
    }
    aside.shrink_to_fit();
  }
  --level;
}

void release(std::vector<Value>&& values) {
  for (Value& value : values) release(std::move(value).take_object());
  values.clear();
}

String::String(TrackedText t, bool is_markup)
    : text(std::move(t)), length(count_code_points(text.view())), markup(is_markup) {}

// --- Dict

namespace {

size_t hash_text(std::string_view text) { return std::hash<std::string_view>()(text); }

constexpr size_t kNotFound = std::numeric_limits<size_t>::max();
constexpr size_t kScanBelow = 8;  // so few entries are compared one by one

}  // namespace

Dict::~Dict() {
  std::vector<Value> values;
  values.reserve(entries_.size() * 2);
  for (Entry& entry : entries_) {
    values.push_back(std::move(entry.key));
    values.push_back(std::move(entry.value));
  }
  release(std::move(values));
}

template <typename Same>
size_t Dict::index_of(size_t hash, Same same) const {
  if (table_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (hashes_[i] == hash && same(entries_[i].key)) return i;
    }
    return kNotFound;
  }
  for (size_t at = hash & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
    if (table_[at] == 0) return kNotFound;
    const size_t index = table_[at] - 1;
    if (hashes_[index] == hash && same(entries_[index].key)) return index;
  }
}

void Dict::add_to_table(size_t hash, size_t index) {
  size_t at = hash & (table_.size() - 1);
  while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
  table_[at] = static_cast<uint32_t>(index + 1);
}

const Value* Dict::find(std::string_view key) const {
  const size_t index = index_of(
      hash_text(key), [&](const Value& k) { return k.is_string() && k.as<String>().text.view() == key; });
  return index == kNotFound ? nullptr : &entries_[index].value;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_string()) return find(key.as<String>().text.view());
  const size_t index = index_of(hash_value(key), [&](const Value& k) { return same_key(k, key); });
  return index == kNotFound ? nullptr : &entries_[index].value;
}

void Dict::set(Value key, Value value) {
  const size_t hash = hash_value(key);
  const size_t index = index_of(hash, [&](const Value& k) { return same_key(k, key); });
  if (index != kNotFound) {
    entries_[index].value = std::move(value);
    return;
  }
  entries_.push_back({std::move(key), std::move(value)});
  hashes_.push_back(hash);
  if (entries_.size() <= kScanBelow) return;
  if (entries_.size() * 2 > table_.size()) {
    table_.assign(table_.empty() ? kScanBelow * 4 : table_.size() * 2, 0);
    for (size_t i = 0; i < entries_.size(); ++i) add_to_table(hashes_[i], i);
  } else {
    add_to_table(hash, entries_.size() - 1);
  }
}

size_t hash_value(const Value& value) {
  switch (value.type()) {
    case Type::boolean:
    case Type::integer:
      return std::hash<int64_t>()(value.as_integer());
    case Type::big_integer:
      return std::hash<double>()(value.as<BigInteger>().value.to_double());
    case Type::real: {
      const double d = value.as_real();
      if (std::trunc(d) == d && d >= -9.2e18 && d <= 9.2e18)
        return std::hash<int64_t>()(static_cast<int64_t>(d));
      return std::hash<double>()(d);
    }
    case Type::string:
      return hash_text(value.as<String>().text.view());
    case Type::tuple: {
      size_t hash = 0x345678;
      for (const Value& item : value.as<Sequence>().items) hash = hash * 1000003 + hash_value(item);
      return hash;
    }
    case Type::list:
      fail("unhashable type: 'list'");
    case Type::dict:
      fail("unhashable type: 'dict'");
    case Type::thing:
      return value.as<Thing>().hash();
    case Type::missing:
    case Type::undefined:
    case Type::none:
      return static_cast<size_t>(value.type());
  }
  return 0;
}

bool same_key(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return a.as<String>().text.view() == b.as<String>().text.view();
  if (a.is_number() && b.is_number()) {
    if (a.is_small_integer() && b.is_small_integer()) return a.as_integer() == b.as_integer();
    if (a.is(Type::big_integer) && b.is(Type::big_integer)) {
      return compare(a.as<BigInteger>().value, b.as<BigInteger>().value) == 0;
    }
    const auto as_double = [](const Value& v) {
      if (v.is(Type::real)) return v.as_real();
      return v.is_small_integer() ? static_cast<double>(v.as_integer())
                                  : v.as<BigInteger>().value.to_double();
    };
    return as_double(a) == as_double(b);
  }
  if (a.is(Type::tuple) && b.is(Type::tuple)) {
    const auto& x = a.as<Sequence>().items;
    const auto& y = b.as<Sequence>().items;
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!same_key(x[i], y[i])) return false;
    }
    return true;
  }
  if (a.type() != b.type()) return false;
  return a.is(Type::thing) ? a.object() == b.object() : true;
}

// --- Thing: what most of them do

TrackedText Thing::repr(Runtime&) const { return TrackedText::of_template("<" + type_name() + " object>"); }
Value Thing::attribute(Runtime&, const Value&, std::string_view) { return {}; }
Value Thing::item(Runtime&, const Value&) { return {}; }
// NOLINTNEXTLINE(performance-unnecessary-value-param): overrides take what is in it
Value Thing::call(Runtime&, Arguments) { fail("'" + type_name() + "' object is not callable"); }
std::optional<int64_t> Thing::length(Runtime&) { return std::nullopt; }
IteratorPtr Thing::iterate(Runtime&, const Value&) { return nullptr; }
IteratorPtr Thing::iterate_reversed(Runtime&, const Value&) { return nullptr; }
bool Thing::equals(Runtime&, const Thing& other) const { return this == &other; }
bool Thing::truthy(Runtime& rt) { return length(rt).value_or(1) != 0; }
size_t Thing::hash() const { return std::hash<const Thing*>()(this); }

// --- Heap

Collectable::Collectable(Heap& heap) : heap_(&heap), next_(heap.first_) {
  if (next_ != nullptr) next_->previous_ = this;
  heap.first_ = this;
}

Collectable::~Collectable() {
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ != nullptr ? previous_->next_ : heap_->first_) = next_;
}

void Heap::charge(Object& object, size_t bytes) {
  check(bytes);
  live_ += bytes;
  object.heap_ = this;
  object.charged_ += bytes;
}

void Heap::check(size_t bytes) const {
  if (bytes > limit_ || live_ > limit_ - bytes) {
    fail(TemplateErrorKind::limit,
         "the values of the template need more than " + std::to_string(limit_ >> 20) + " MiB of memory");
  }
}

Value Heap::string(TrackedText text, bool markup) {
  auto object = std::make_shared<String>(std::move(text), markup);
  charge(*object,
         sizeof(String) + 32 + object->text.size() + object->text.input_spans().size() * sizeof(ByteSpan));
  return Value(Type::string, std::move(object));
}

Value Heap::integer(const BigInt& value) {
  if (const auto small = value.to_int64()) return Value::integer(*small);
  auto object = std::make_shared<BigInteger>(value);
  charge(*object, sizeof(BigInteger) + 32 + value.bits() / 8);
  return Value(Type::big_integer, std::move(object));
}

Value Heap::list(std::vector<Value> items) {
  auto object = std::make_shared<Sequence>(std::move(items));
  charge(*object, sizeof(Sequence) + 32 + object->items.size() * sizeof(Value));
  return Value(Type::list, std::move(object));
}

Value Heap::tuple(std::vector<Value> items) {
  auto object = std::make_shared<Sequence>(std::move(items));
  charge(*object, sizeof(Sequence) + 32 + object->items.size() * sizeof(Value));
  return Value(Type::tuple, std::move(object));
}

Value Heap::dict(std::shared_ptr<Dict> dict) {
  charge(*dict, sizeof(Dict) + 32 + dict->size() * (2 * sizeof(Value) + 16));
  return Value(Type::dict, std::move(dict));
}

Value Heap::undefined(std::string message, TemplateErrorKind kind) {
  auto object = std::make_shared<Undefined>(kind, std::move(message));
  charge(*object, sizeof(Undefined) + 32 + object->message.size());
  return Value(Type::undefined, std::move(object));
}

void Heap::collect() {
  // First everything is moved out of all of them, so that nothing dies while the list is walked.
  std::vector<Value> values;
  std::vector<std::shared_ptr<Collectable>> others;
  for (Collectable* each = first_; each != nullptr; each = each->next_) each->surrender(values, others);
  others.clear();
  release(std::move(values));
}

}  // namespace qwench::jinja
