#include "core/utf8.h"
#include "text/jinja/operations.h"
#include "text/jinja/things.h"

namespace qwench::jinja {
namespace {

class SequenceIterator final : public Iterator {
 public:
  explicit SequenceIterator(Value sequence) : sequence_(std::move(sequence)) {}
  ~SequenceIterator() override { release(std::move(sequence_).take_object()); }
  bool next(Runtime& rt, Value& out) override {
    rt.step();
    const auto& items = sequence_.as<Sequence>().items;
    if (next_ >= items.size()) return false;
    out = items[next_++];
    return true;
  }

 private:
  Value sequence_;
  size_t next_ = 0;
};

class KeyIterator final : public Iterator {
 public:
  explicit KeyIterator(Value dict) : dict_(std::move(dict)) {}
  ~KeyIterator() override { release(std::move(dict_).take_object()); }
  bool next(Runtime& rt, Value& out) override {
    rt.step();
    const auto& entries = dict_.as<Dict>().entries();
    if (next_ >= entries.size()) return false;
    out = entries[next_++].key;
    return true;
  }

 private:
  Value dict_;
  size_t next_ = 0;
};

class CharacterIterator final : public Iterator {
 public:
  explicit CharacterIterator(Value string) : string_(std::move(string)) {}
  bool next(Runtime& rt, Value& out) override {
    rt.step();
    const String& string = string_.as<String>();
    if (at_ >= string.text.size()) return false;
    const size_t end = at_ + static_cast<size_t>(decode_utf8(string.text.view().substr(at_)).length);
    TrackedText character = string.text.slice(at_, end);
    out = rt.heap.string(std::move(character));
    at_ = end;
    return true;
  }

 private:
  Value string_;
  size_t at_ = 0;
};

class EmptyIterator final : public Iterator {
 public:
  bool next(Runtime&, Value&) override { return false; }
};

IteratorPtr try_iterate(Runtime& rt, const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      return std::make_shared<EmptyIterator>();
    case Type::string:
      return std::make_shared<CharacterIterator>(value);
    case Type::list:
    case Type::tuple:
      return std::make_shared<SequenceIterator>(value);
    case Type::dict:
      return std::make_shared<KeyIterator>(value);
    case Type::thing:
      return value.as<Thing>().iterate(rt, value);
    default:
      return nullptr;
  }
}

}  // namespace

IteratorPtr iterate(Runtime& rt, const Value& value) {
  IteratorPtr iterator = try_iterate(rt, value);
  if (iterator == nullptr) fail("'" + type_name(value) + "' object is not iterable");
  return iterator;
}

bool is_iterable(Runtime& rt, const Value& value) { return try_iterate(rt, value) != nullptr; }

std::vector<Value> to_vector(Runtime& rt, const Value& value) {
  if (value.is_sequence()) {
    const auto& items = value.as<Sequence>().items;
    rt.heap.check(items.size() * sizeof(Value));
    rt.step(items.size());
    return items;
  }
  // A string becomes one of its own for each character: what cannot fit is known before.
  if (value.is_string()) rt.heap.check(value.as<String>().length * (sizeof(String) + sizeof(Value)));
  std::vector<Value> items;
  const IteratorPtr iterator = iterate(rt, value);
  for (Value each; iterator->next(rt, each);) {
    items.push_back(std::move(each));
    if ((items.size() & 0xFFF) == 0) rt.heap.check(items.size() * sizeof(Value));
  }
  return items;
}

IteratorPtr iterate_reversed(Runtime& rt, const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      return std::make_shared<EmptyIterator>();
    case Type::list:
    case Type::tuple:
      return make_iterator([value, left = value.as<Sequence>().items.size()](Runtime&, Value& out) mutable {
        if (left == 0) return false;
        out = value.as<Sequence>().items[--left];
        return true;
      });
    case Type::dict:
      return make_iterator([value, left = value.as<Dict>().size()](Runtime&, Value& out) mutable {
        if (left == 0) return false;
        out = value.as<Dict>().entries()[--left].key;
        return true;
      });
    case Type::string:
      return make_iterator(
          [value, left = value.as<String>().text.size()](Runtime& runtime, Value& out) mutable {
            if (left == 0) return false;
            const String& string = value.as<String>();
            const size_t end = left;
            do --left;
            while (left > 0 && (static_cast<unsigned char>(string.text.str()[left]) & 0xC0) == 0x80);
            out = substring(runtime, string, left, end);
            return true;
          });
    case Type::thing:
      return value.as<Thing>().iterate_reversed(rt, value);
    default:
      return nullptr;
  }
}

std::optional<int64_t> length(Runtime& rt, const Value& value) {
  switch (value.type()) {
    case Type::undefined:
      return 0;
    case Type::string:
      return static_cast<int64_t>(value.as<String>().length);
    case Type::list:
    case Type::tuple:
      return static_cast<int64_t>(value.as<Sequence>().items.size());
    case Type::dict:
      return static_cast<int64_t>(value.as<Dict>().size());
    case Type::thing:
      return value.as<Thing>().length(rt);
    default:
      return std::nullopt;
  }
}

Value generator(Runtime& rt, IteratorPtr iterator, const char* type) {
  return rt.heap.thing<Generator>(std::move(iterator), type);
}

}  // namespace qwench::jinja
