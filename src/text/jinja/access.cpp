#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

// The attributes with underscores that Python's objects have: the sandbox refuses them, which differs from
// their being absent once they are used.
bool has_special_attribute(const Value& value, std::string_view name) {
  constexpr std::array common = {
      "__class__",   "__delattr__", "__dir__",           "__doc__",         "__eq__",
      "__format__",  "__ge__",      "__getattribute__",  "__getstate__",    "__gt__",
      "__hash__",    "__init__",    "__init_subclass__", "__le__",          "__lt__",
      "__ne__",      "__new__",     "__reduce__",        "__reduce_ex__",   "__repr__",
      "__setattr__", "__sizeof__",  "__str__",           "__subclasshook__"};
  constexpr std::array container = {"__len__", "__getitem__", "__contains__", "__iter__"};
  constexpr std::array number = {"__add__",  "__sub__",   "__mul__",   "__truediv__", "__floordiv__",
                                 "__mod__",  "__pow__",   "__radd__",  "__rsub__",    "__rmul__",
                                 "__neg__",  "__pos__",   "__abs__",   "__int__",     "__float__",
                                 "__bool__", "__round__", "__divmod__"};
  const auto in = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (in(common)) return true;
  switch (value.type()) {
    case Type::boolean:
    case Type::integer:
    case Type::big_integer:
    case Type::real:
      return in(number) || (name == "__index__" && value.is_integer());
    case Type::string:
      if (name == "__html__" || name == "__html_format__") return is_markup(value);
      return in(container) || name == "__add__" || name == "__mul__" || name == "__rmul__" ||
             name == "__mod__" || name == "__rmod__";
    case Type::tuple:
      return in(container) || name == "__add__" || name == "__mul__" || name == "__rmul__";
    case Type::list:
      return in(container) || name == "__add__" || name == "__mul__" || name == "__rmul__" ||
             name == "__iadd__" || name == "__imul__" || name == "__setitem__" || name == "__delitem__" ||
             name == "__reversed__";
    case Type::dict:
      return in(container) || name == "__or__" || name == "__ror__" || name == "__ior__" ||
             name == "__setitem__" || name == "__delitem__" || name == "__reversed__";
    case Type::none:
      return name == "__bool__";
    default:
      return name == "__module__" || name == "__dict__" || name == "__call__" || name == "__iter__" ||
             name == "__len__";
  }
}

bool is_refused(const Value& object, std::string_view name) {
  return (!name.empty() && name[0] == '_') || is_mutating(object, name);
}

Value unsafe(Runtime& rt, const Value& object, std::string_view name) {
  return rt.heap.undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)),
      TemplateErrorKind::security);
}

std::string object_name(const Value& object) {
  if (object.is_none()) return "None";
  return type_name(object) + " object";
}

Value no_attribute(Runtime& rt, const Value& object, std::string_view name) {
  return rt.heap.undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
}

/// x[key] in Python; missing where it raises LookupError or TypeError.
Value python_item(Runtime& rt, const Value& object, const Value& key) {
  switch (object.type()) {
    case Type::undefined:
      fail_undefined(object);
    case Type::dict: {
      if (key.is(Type::list) || key.is(Type::dict)) return {};
      const Value* found = object.as<Dict>().find(key);
      return found == nullptr ? Value() : *found;
    }
    case Type::list:
    case Type::tuple: {
      const auto& items = object.as<Sequence>().items;
      if (!key.is_small_integer()) return {};
      const int64_t size = static_cast<int64_t>(items.size());
      const int64_t index = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
      return index < 0 || index >= size ? Value() : items[static_cast<size_t>(index)];
    }
    case Type::string: {
      const String& string = object.as<String>();
      if (!key.is_small_integer()) return {};
      const int64_t size = static_cast<int64_t>(string.length);
      const int64_t index = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
      return index < 0 || index >= size ? Value() : character(rt, string, static_cast<size_t>(index));
    }
    case Type::thing:
      return object.as<Thing>().item(rt, key);
    default:
      return {};
  }
}

}  // namespace

bool is_mutating(const Value& object, std::string_view name) {
  constexpr std::array list = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  constexpr std::array dict = {"clear", "pop", "popitem", "setdefault", "update"};
  if (object.is(Type::list)) return std::find(list.begin(), list.end(), name) != list.end();
  return object.is(Type::dict) && std::find(dict.begin(), dict.end(), name) != dict.end();
}

NativeFunction find_method(const Value& value, std::string_view name) {
  switch (value.type()) {
    case Type::string: {
      const NativeFunction method = find_string_method(name);
      return method != nullptr ? method : find_string_test(name);
    }
    case Type::list:
      return find_list_method(name);
    case Type::tuple:
      return find_tuple_method(name);
    case Type::dict:
      return find_dict_method(name);
    case Type::boolean:
    case Type::integer:
    case Type::big_integer:
    case Type::real:
      return find_number_method(value, name);
    default:
      return nullptr;
  }
}

Value python_attribute(Runtime& rt, const Value& object, std::string_view name) {
  rt.step();
  if (object.is_undefined()) {
    if (!name.starts_with("__") || !name.ends_with("__")) fail_undefined(object);
    return has_special_attribute(object, name) ? Value::none() : Value();
  }
  if (object.is(Type::thing)) {
    Value value = object.as<Thing>().attribute(rt, object, name);
    if (!value.is_missing()) return value;
  }
  if (object.is_number()) {
    const bool real_part = name == "real" || (name == "numerator" && object.is_integer());
    if (real_part) return object.is(Type::boolean) ? Value::integer(object.as_integer()) : object;
    if (name == "imag") return object.is(Type::real) ? Value::real(0.0) : Value::integer(0);
    if (name == "denominator" && object.is_integer()) return Value::integer(1);
  }
  if (object.is(Type::tuple) && object.as<Sequence>().group) {
    if (name == "grouper") return object.as<Sequence>().items[0];
    if (name == "list") return object.as<Sequence>().items[1];
  }
  if (const NativeFunction method = find_method(object, name))
    return rt.heap.thing<Function>(std::string(name), method, object);
  if (is_mutating(object, name)) return Value::none();  // never used: the sandbox refuses it
  if (!name.empty() && name[0] == '_' && has_special_attribute(object, name)) return Value::none();
  return {};
}

Value get_attribute(Runtime& rt, const Value& object, std::string_view name) {
  Value value = python_attribute(rt, object, name);
  if (!value.is_missing()) return is_refused(object, name) ? unsafe(rt, object, name) : value;
  if (object.is(Type::dict)) {
    const Value* found = object.as<Dict>().find(name);
    if (found != nullptr) return *found;
  } else if (object.is_undefined()) {
    fail_undefined(object);
  } else if (object.is(Type::thing)) {
    Value found = object.as<Thing>().item(rt, rt.heap.string(name));
    if (!found.is_missing()) return found;
  }
  return no_attribute(rt, object, name);
}

Value get_item(Runtime& rt, const Value& object, const Value& key) {
  if (key.is_string()) rt.work(key.as<String>().text.size() * 4);
  rt.step();
  Value value = python_item(rt, object, key);
  if (!value.is_missing()) return value;
  if (key.is_string()) {
    const std::string& name = key.as<String>().text.str();
    value = python_attribute(rt, object, name);
    if (!value.is_missing()) return is_refused(object, name) ? unsafe(rt, object, name) : value;
    return no_attribute(rt, object, name);
  }
  return rt.heap.undefined(fmt::format("{} has no element {}", object_name(object), repr(rt, key).str()));
}

// --- Parts of strings

Value substring(Runtime& rt, const String& text, size_t begin, size_t end) {
  rt.work(end - begin);
  return rt.heap.string(text.text.slice(begin, end), text.markup);
}

Value character(Runtime& rt, const String& text, size_t index) {
  size_t at = index;
  if (!text.ascii()) {
    rt.work(text.text.size());
    at = byte_of_code_point(text.text.view(), index);
  }
  const size_t size = static_cast<size_t>(decode_utf8(text.text.view().substr(at)).length);
  return substring(rt, text, at, at + size);
}

// --- Slices

SliceRange slice_range(const Value& start, const Value& stop, const Value& step, int64_t length) {
  const auto is_default = [](const Value& v) { return v.is_missing() || v.is_none(); };
  const auto bound = [](const Value& v) {
    if (v.is_small_integer()) return v.as_integer();
    if (v.is(Type::big_integer)) {
      return v.as<BigInteger>().value.negative() ? std::numeric_limits<int64_t>::min()
                                                 : std::numeric_limits<int64_t>::max();
    }
    fail("slice indices must be integers or None or have an __index__ method");
  };
  const int64_t stride = is_default(step) ? 1 : std::max(bound(step), -std::numeric_limits<int64_t>::max());
  if (stride == 0) fail("slice step cannot be zero");
  const int64_t lowest = stride < 0 ? -1 : 0;
  const int64_t highest = stride < 0 ? length - 1 : length;
  const auto clamp = [&](const Value& v, int64_t otherwise) {
    if (is_default(v)) return otherwise;
    const int64_t at = bound(v);
    if (at < 0) return at < -length ? lowest : std::max(at + length, lowest);
    return std::min(at, highest);
  };
  const int64_t first = clamp(start, stride < 0 ? highest : lowest);
  const int64_t last = clamp(stop, stride < 0 ? lowest : highest);
  int64_t count = 0;
  if (stride > 0 && first < last) count = (last - first - 1) / stride + 1;
  if (stride < 0 && last < first) count = (first - last - 1) / -stride + 1;
  return {first, stride, count};
}

namespace {

Value slice_string(Runtime& rt, const String& string, const SliceRange& range) {
  rt.work(string.text.size());
  if (range.step == 1) {
    if (string.ascii()) {
      return substring(rt, string, static_cast<size_t>(range.start),
                       static_cast<size_t>(range.start + range.count));
    }
    const size_t begin = byte_of_code_point(string.text.view(), static_cast<size_t>(range.start));
    const size_t end =
        begin + byte_of_code_point(string.text.view().substr(begin), static_cast<size_t>(range.count));
    return substring(rt, string, begin, end);
  }
  rt.step(static_cast<uint64_t>(range.count) / 4);
  const std::vector<size_t> offsets = code_point_offsets(string.text.view());
  TrackedText out;
  for (int64_t i = 0; i < range.count; ++i) {
    const size_t at = static_cast<size_t>(range.start + i * range.step);
    out.append(string.text, offsets[at], offsets[at + 1]);
  }
  return rt.heap.string(std::move(out), string.markup);
}

}  // namespace

Value slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step) {
  rt.step();
  switch (object.type()) {
    case Type::undefined:
      fail_undefined(object);
    case Type::string: {
      const String& string = object.as<String>();
      return slice_string(rt, string, slice_range(start, stop, step, static_cast<int64_t>(string.length)));
    }
    case Type::list:
    case Type::tuple: {
      const auto& items = object.as<Sequence>().items;
      const SliceRange range = slice_range(start, stop, step, static_cast<int64_t>(items.size()));
      rt.step(static_cast<uint64_t>(range.count));
      std::vector<Value> part;
      part.reserve(static_cast<size_t>(range.count));
      for (int64_t i = 0; i < range.count; ++i)
        part.push_back(items[static_cast<size_t>(range.start + i * range.step)]);
      Value result = object.is(Type::list) ? rt.heap.list(std::move(part)) : rt.heap.tuple(std::move(part));
      return result.mark_input(object.from_input());
    }
    case Type::dict:
      fail("unhashable type: 'slice'");
    default:
      break;
  }
  if (object.is(Type::thing)) {
    if (auto* range = dynamic_cast<Range*>(&object.as<Thing>())) {
      const SliceRange part = slice_range(start, stop, step, *range->length(rt));
      const int64_t first = range->at(part.start);
      const int64_t stride = range->step() * part.step;
      return rt.heap.thing<Range>(first, first + part.count * stride, stride);
    }
  }
  fail("'" + type_name(object) + "' object is not subscriptable");
}

}  // namespace qwench::jinja
