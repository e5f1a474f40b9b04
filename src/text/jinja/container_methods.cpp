#include <bit>
#include <cmath>
#include <map>

#include "text/jinja/methods.h"

namespace qwench::jinja {
namespace {

Value index_method(Runtime& rt, const Value& self, Arguments& arguments) {
  const auto bound = bind_positional("index", arguments, 1, 3);
  const auto& items = self.as<Sequence>().items;
  const int64_t length = static_cast<int64_t>(items.size());
  const auto at = [&](const Value& value, int64_t otherwise) {
    if (value.is_missing()) return otherwise;
    const int64_t index = to_index("index", value);
    return index < 0 ? std::max<int64_t>(0, index < -length ? 0 : index + length) : std::min(index, length);
  };
  const int64_t end = at(bound[2], length);
  for (int64_t i = at(bound[1], 0); i < end; ++i) {
    if (equals(rt, items[static_cast<size_t>(i)], bound[0])) return Value::integer(i);
  }
  fail(repr(rt, bound[0]).str() + " is not in " + type_name(self));
}

Value count_items(Runtime& rt, const Value& self, Arguments& arguments) {
  const Value wanted = bind_positional("count", arguments, 1, 1)[0];
  int64_t count = 0;
  for (const Value& item : self.as<Sequence>().items) count += equals(rt, item, wanted) ? 1 : 0;
  return Value::integer(count);
}

Value copy_method(Runtime&, const Value& self, Arguments& arguments) {
  bind_positional("copy", arguments, 0, 0);
  return self;  // nothing can change it
}

Value get_method(Runtime&, const Value& self, Arguments& arguments) {
  const auto bound = bind_positional("get", arguments, 1, 2);
  const Value* found = self.as<Dict>().find(bound[0]);
  if (found != nullptr) return *found;
  return bound[1].is_missing() ? Value::none() : bound[1];
}

template <DictView::Kind kind>
Value view_method(Runtime& rt, const Value& self, Arguments& arguments) {
  bind_positional("dict view", arguments, 0, 0);
  return rt.heap.thing<DictView>(self, kind);
}

Value bit_length_method(Runtime&, const Value& self, Arguments& arguments) {
  bind_positional("bit_length", arguments, 0, 0);
  return Value::integer(static_cast<int64_t>(to_bigint(self).bits()));
}

Value conjugate_method(Runtime&, const Value& self, Arguments& arguments) {
  bind_positional("conjugate", arguments, 0, 0);
  return self.is(Type::boolean) ? Value::integer(self.as_integer()) : self;
}

Value is_integer_method(Runtime&, const Value& self, Arguments& arguments) {
  bind_positional("is_integer", arguments, 0, 0);
  return Value::boolean(std::isfinite(self.as_real()) && std::trunc(self.as_real()) == self.as_real());
}

void add_pairs(Runtime& rt, Dict& dict, const Value& source) {
  if (source.is(Type::dict)) {
    rt.step(source.as<Dict>().size());
    for (const auto& [key, value] : source.as<Dict>().entries()) dict.set(key, value);
    return;
  }
  if (source.is_undefined()) fail_undefined(source);
  const IteratorPtr iterator = iterate(rt, source);
  for (Value pair; iterator->next(rt, pair);) {
    const std::vector<Value> items = to_vector(rt, pair);
    if (items.size() != 2)
      fail("dictionary update sequence element has length " + std::to_string(items.size()) +
           "; 2 is required");
    dict.set(items[0], items[1]);
  }
}

}  // namespace

Value make_dict(Runtime& rt, const Value&, Arguments& arguments) {
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument");
  auto dict = std::make_shared<Dict>();
  if (!arguments.positional.empty()) add_pairs(rt, *dict, arguments.positional[0]);
  for (auto& [name, value] : arguments.named) dict->set(rt.heap.string(name), std::move(value));
  return rt.heap.dict(std::move(dict));
}

Value dict_from_keys(Runtime& rt, const Value&, Arguments& arguments) {
  const auto bound = bind_positional("fromkeys", arguments, 1, 2);
  auto dict = std::make_shared<Dict>();
  const IteratorPtr iterator = iterate(rt, bound[0]);
  for (Value key; iterator->next(rt, key);) dict->set(key, bound[1].is_missing() ? Value::none() : bound[1]);
  return rt.heap.dict(std::move(dict));
}

NativeFunction find_tuple_method(std::string_view name) {
  if (name == "index") return index_method;
  return name == "count" ? count_items : nullptr;
}

NativeFunction find_list_method(std::string_view name) {
  return name == "copy" ? copy_method : find_tuple_method(name);
}

NativeFunction find_dict_method(std::string_view name) {
  static const std::map<std::string_view, NativeFunction> methods = {
      {"get", get_method},
      {"keys", view_method<DictView::Kind::keys>},
      {"values", view_method<DictView::Kind::values>},
      {"items", view_method<DictView::Kind::items>},
      {"copy", copy_method},
      {"fromkeys", dict_from_keys},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

NativeFunction find_number_method(const Value& number, std::string_view name) {
  if (name == "conjugate") return conjugate_method;
  if (number.is(Type::real)) return name == "is_integer" ? is_integer_method : nullptr;
  return name == "bit_length" ? bit_length_method : nullptr;
}

}  // namespace qwench::jinja
