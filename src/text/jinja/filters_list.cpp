#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/builtins.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/things.h"

namespace qwench::jinja {
namespace {

Value length_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind_positional("len", arguments, 1, 1)[0];
  const auto size = length(rt, value);
  if (!size) fail("object of type '" + type_name(value) + "' has no len()");
  return Value::integer(*size);
}

Value first_filter(Runtime& rt, Arguments& arguments) {
  const Value sequence = bind("first", arguments, {"seq"}, 1)[0];
  Value first;
  if (iterate(rt, sequence)->next(rt, first)) return first;
  return rt.heap.undefined("No first item, sequence was empty.");
}

Value last_filter(Runtime& rt, Arguments& arguments) {
  const Value sequence = bind("last", arguments, {"seq"}, 1)[0];
  const IteratorPtr reversed = iterate_reversed(rt, sequence);
  if (reversed == nullptr) fail("'" + type_name(sequence) + "' object is not reversible");
  Value last;
  if (reversed->next(rt, last)) return last;
  return rt.heap.undefined("No last item, sequence was empty.");
}

Value random_filter(Runtime&, Arguments&) {
  fail("the filter 'random' would make a prompt depend on chance: it is not supported");
}

Value list_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind("list", arguments, {"value"}, 1)[0];
  return rt.heap.list(to_vector(rt, value));
}

Value reverse_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind("reverse", arguments, {"value"}, 1)[0];
  if (value.is_string()) return slice(rt, value, Value::none(), Value::none(), Value::integer(-1));
  if (IteratorPtr reversed = iterate_reversed(rt, value)) {
    return generator(rt, std::move(reversed), value.is(Type::list) ? "list_reverseiterator" : "reversed");
  }
  if (!is_iterable(rt, value)) fail("argument must be iterable");
  std::vector<Value> items = to_vector(rt, value);
  std::reverse(items.begin(), items.end());
  return rt.heap.list(std::move(items));
}

Value join_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("join", arguments, {"value", "d", "attribute"}, 1);
  const AttributePath path(rt, bound[2]);
  TrackedText separator_storage;
  const TrackedText empty;
  const TrackedText& separator = bound[1].is_missing() ? empty : text_of(rt, bound[1], separator_storage);
  std::vector<Value> items;
  bool markup = rt.autoescape && is_markup(bound[1]);
  if (rt.autoescape) {  // whether to escape depends on all the items
    items = to_vector(rt, bound[0]);
    for (Value& item : items) {
      item = path.get(rt, item);
      markup = markup || is_markup(item);
    }
  }
  TrackedText out;
  TrackedText storage;
  bool first = true;
  const auto add = [&](const Value& item) {
    rt.step();
    if (!first)
      out.append(markup ? escape_html(rt, bound[1].is_missing() ? rt.heap.string("") : bound[1]) : separator);
    first = false;
    out.append(markup ? escape_html(rt, item) : text_of(rt, item, storage));
    rt.check_size(out.size());
  };
  if (rt.autoescape) {
    for (const Value& item : items) add(item);
  } else {
    const IteratorPtr iterator = iterate(rt, bound[0]);
    for (Value item; iterator->next(rt, item);) add(path.get(rt, item));
  }
  rt.work(out.size());
  return rt.heap.string(std::move(out), markup);
}

Value default_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("default", arguments, {"value", "default_value", "boolean"}, 1);
  const bool replaced = bound[0].is_undefined() || (truthy(rt, bound[2]) && !truthy(rt, bound[0]));
  if (!replaced) return bound[0];
  return bound[1].is_missing() ? rt.heap.string("") : bound[1];
}

Value attr_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("attr", arguments, {"obj", "name"}, 2);
  const std::string& name = to_string_argument("attr", bound[1]).text.str();
  if (python_attribute(rt, bound[0], name).is_missing()) {
    return rt.heap.undefined(fmt::format("'{} object' has no attribute '{}'", type_name(bound[0]), name));
  }
  return get_attribute(rt, bound[0], name);
}

// --- Order

/// Sorts by keys that may not be comparable: then it fails as Python's sorted does.
struct Keyed {
  std::vector<Value> key;
  Value item;
};

bool key_less(Runtime& rt, const Keyed& a, const Keyed& b) {
  for (size_t i = 0; i < a.key.size(); ++i) {
    if (!equals(rt, a.key[i], b.key[i])) return less(rt, a.key[i], b.key[i]);
  }
  return false;
}

void sort_keyed(Runtime& rt, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? key_less(rt, b, a) : key_less(rt, a, b);
  });
}

Value items_of(Runtime& rt, std::vector<Keyed>& sorted) {
  std::vector<Value> items;
  items.reserve(sorted.size());
  for (Keyed& each : sorted) items.push_back(std::move(each.item));
  return rt.heap.list(std::move(items));
}

Value sort_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("sort", arguments, {"value", "reverse", "case_sensitive", "attribute"}, 1);
  const bool case_sensitive = truthy(rt, bound[2]);
  std::vector<AttributePath> paths;
  if (bound[3].is_string()) {
    const String& attributes = bound[3].as<String>();
    for (const ByteSpan& part : split_on(rt, attributes.text.view(), ",", -1)) {
      paths.emplace_back(rt, substring(rt, attributes, part.begin, part.end));
    }
  } else {
    paths.emplace_back(rt, bound[3]);
  }
  std::vector<Keyed> items;
  for (Value& item : to_vector(rt, bound[0])) {
    Keyed keyed;
    for (const AttributePath& path : paths) {
      Value key = path.get(rt, item);
      keyed.key.push_back(case_sensitive ? std::move(key) : ignore_case(rt, key));
    }
    keyed.item = std::move(item);
    items.push_back(std::move(keyed));
  }
  sort_keyed(rt, items, truthy(rt, bound[1]));
  return items_of(rt, items);
}

Value dictsort_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("dictsort", arguments, {"value", "case_sensitive", "by", "reverse"}, 1);
  if (bound[0].is_undefined()) fail_undefined(bound[0]);
  if (!bound[0].is(Type::dict)) fail_type("dictsort", "a dict", bound[0]);
  const std::string by = bound[2].is_missing() ? "key" : to_text(rt, bound[2]).str();
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  const bool case_sensitive = truthy(rt, bound[1]);
  std::vector<Keyed> items;
  for (const auto& [key, value] : bound[0].as<Dict>().entries()) {
    const Value& by_value = by == "key" ? key : value;
    items.push_back({{case_sensitive ? by_value : ignore_case(rt, by_value)}, rt.heap.tuple({key, value})});
  }
  sort_keyed(rt, items, truthy(rt, bound[3]));
  return items_of(rt, items);
}

template <bool largest>
Value extreme_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind(largest ? "max" : "min", arguments, {"value", "case_sensitive", "attribute"}, 1);
  const bool case_sensitive = truthy(rt, bound[1]);
  const AttributePath path(rt, bound[2]);
  const IteratorPtr iterator = iterate(rt, bound[0]);
  Value best;
  Value best_key;
  for (Value item; iterator->next(rt, item);) {
    Value key = path.get(rt, item);
    if (!case_sensitive) key = ignore_case(rt, key);
    if (best.is_missing() || compare(rt, largest ? Operator::greater : Operator::less, key, best_key)) {
      best = item;
      best_key = std::move(key);
    }
  }
  return best.is_missing() ? rt.heap.undefined("No aggregated item, sequence was empty.") : best;
}

Value sum_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("sum", arguments, {"iterable", "attribute", "start"}, 1);
  const AttributePath path(rt, bound[1]);
  Value sum = bound[2].is_missing() ? Value::integer(0) : bound[2];
  if (sum.is_string()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  const IteratorPtr iterator = iterate(rt, bound[0]);
  for (Value item; iterator->next(rt, item);) sum = binary(rt, Operator::add, sum, path.get(rt, item));
  return sum;
}

Value groupby_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("groupby", arguments, {"value", "attribute", "default", "case_sensitive"}, 2);
  const bool case_sensitive = truthy(rt, bound[3]);
  const AttributePath path(rt, bound[1]);
  std::vector<Keyed> items;
  for (Value& item : to_vector(rt, bound[0])) {
    Value key = path.get(rt, item, bound[2]);
    items.push_back({{case_sensitive ? std::move(key) : ignore_case(rt, key)}, item});
  }
  // Unlike sort, the keys are compared with < alone.
  std::stable_sort(items.begin(), items.end(),
                   [&](const Keyed& a, const Keyed& b) { return less(rt, a.key[0], b.key[0]); });
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    std::vector<Value> members;
    size_t end = begin;
    for (; end < items.size() && equals(rt, items[end].key[0], items[begin].key[0]); ++end)
      members.push_back(items[end].item);
    if (end == begin) members.push_back(items[end++].item);  // a key that does not equal itself
    const Value grouper = case_sensitive ? items[begin].key[0] : path.get(rt, members[0], bound[2]);
    Value group = rt.heap.tuple({grouper, rt.heap.list(std::move(members))});
    group.as<Sequence>().group = true;
    groups.push_back(std::move(group));
    begin = end;
  }
  return rt.heap.list(std::move(groups));
}

}  // namespace

void add_list_filters(FilterTable& table) {
  table["length"] = length_filter;
  table["count"] = length_filter;
  table["first"] = first_filter;
  table["last"] = last_filter;
  table["random"] = random_filter;
  table["list"] = list_filter;
  table["reverse"] = reverse_filter;
  table["join"] = join_filter;
  table["default"] = default_filter;
  table["d"] = default_filter;
  table["attr"] = attr_filter;
  table["sort"] = sort_filter;
  table["dictsort"] = dictsort_filter;
  table["min"] = extreme_filter<false>;
  table["max"] = extreme_filter<true>;
  table["sum"] = sum_filter;
  table["groupby"] = groupby_filter;
}

}  // namespace qwench::jinja
