#include <functional>

#include <fmt/format.h>

#include "text/jinja/builtins.h"
#include "text/jinja/things.h"

// Filters that give an iterator: like Python's generators they do nothing, fail in nothing, until they are
// read.

namespace qwench::jinja {
namespace {

/// Reads `source` once the iterator is started.
class LazySource {
 public:
  explicit LazySource(Value source) : source_(std::move(source)) {}
  bool started() const { return iterator_ != nullptr || done_; }
  void start(Runtime& rt) { iterator_ = iterate(rt, source_); }
  void finish() { done_ = true; }
  bool next(Runtime& rt, Value& out) {
    if (done_) return false;
    if (iterator_ == nullptr) start(rt);
    done_ = !iterator_->next(rt, out);
    return !done_;
  }
  const Value& value() const { return source_; }

 private:
  Value source_;
  IteratorPtr iterator_;
  bool done_ = false;
};

Arguments with_first(const Value& first, const Arguments& rest) {
  Arguments all;
  all.positional.reserve(rest.positional.size() + 1);
  all.positional.push_back(first);
  all.positional.insert(all.positional.end(), rest.positional.begin(), rest.positional.end());
  all.named = rest.named;
  return all;
}

Value take_first(Arguments& arguments) {
  Value first = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return first;
}

using Transform = std::function<Value(Runtime&, const Value&)>;

Transform make_map(Runtime& rt, Arguments arguments) {
  const bool by_attribute = arguments.positional.empty() && !arguments.named.empty() &&
                            std::any_of(arguments.named.begin(), arguments.named.end(),
                                        [](const auto& n) { return n.first == "attribute"; });
  if (by_attribute) {
    const auto bound = bind("map", arguments, {"attribute", "default"}, 1);
    return [path = AttributePath(rt, bound[0]), otherwise = bound[1]](Runtime& runtime, const Value& item) {
      return path.get(runtime, item, otherwise);
    };
  }
  if (arguments.positional.empty()) fail("map requires a filter argument");
  Value name = take_first(arguments);
  return [name = std::move(name), arguments = std::move(arguments)](Runtime& runtime, const Value& item) {
    Arguments call = with_first(item, arguments);
    return call_filter_named(runtime, name, call);
  };
}

Value map_filter(Runtime& rt, Arguments& arguments) {
  LazySource source(take_first(arguments));
  return generator(rt, make_iterator([source, arguments = std::move(arguments), transform = Transform()](
                                         Runtime& runtime, Value& out) mutable {
                     if (!source.started()) {
                       if (!truthy(runtime, source.value()))
                         source.finish();
                       else
                         transform = make_map(runtime, arguments);
                     }
                     Value item;
                     if (!source.next(runtime, item)) return false;
                     out = transform(runtime, item);
                     return true;
                   }));
}

using Predicate = std::function<bool(Runtime&, const Value&)>;

Predicate make_predicate(Runtime& rt, Arguments arguments, bool by_attribute) {
  Transform subject = [](Runtime&, const Value& item) { return item; };
  if (by_attribute) {
    if (arguments.positional.empty()) fail("Missing parameter for attribute name");
    subject = [path = AttributePath(rt, take_first(arguments))](Runtime& runtime, const Value& item) {
      return path.get(runtime, item);
    };
  }
  if (arguments.positional.empty()) {
    return [subject](Runtime& runtime, const Value& item) { return truthy(runtime, subject(runtime, item)); };
  }
  Value name = take_first(arguments);
  return [subject, name = std::move(name), arguments = std::move(arguments)](Runtime& runtime,
                                                                             const Value& item) {
    Arguments call = with_first(subject(runtime, item), arguments);
    return call_test_named(runtime, name, call);
  };
}

template <bool wanted, bool by_attribute>
Value selection_filter(Runtime& rt, Arguments& arguments) {
  LazySource source(take_first(arguments));
  return generator(rt, make_iterator([source, arguments = std::move(arguments), predicate = Predicate()](
                                         Runtime& runtime, Value& out) mutable {
                     if (!source.started()) {
                       if (!truthy(runtime, source.value()))
                         source.finish();
                       else
                         predicate = make_predicate(runtime, arguments, by_attribute);
                     }
                     while (source.next(runtime, out)) {
                       if (predicate(runtime, out) == wanted) return true;
                     }
                     return false;
                   }));
}

Value unique_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("unique", arguments, {"value", "case_sensitive", "attribute"}, 1);
  const bool case_sensitive = truthy(rt, bound[1]);
  return generator(
      rt, make_iterator([source = LazySource(bound[0]), case_sensitive, path = AttributePath(rt, bound[2]),
                         seen = std::make_shared<Dict>()](Runtime& runtime, Value& out) mutable {
        while (source.next(runtime, out)) {
          Value key = path.get(runtime, out);
          if (!case_sensitive) key = ignore_case(runtime, key);
          if (seen->find(key) != nullptr) continue;
          runtime.heap.charge(*seen, 2 * sizeof(Value) + 16);
          seen->set(std::move(key), Value::none());
          return true;
        }
        return false;
      }));
}

Value items_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind("items", arguments, {"value"}, 1)[0];
  return generator(rt, make_iterator([value, index = size_t{0}](Runtime& runtime, Value& out) mutable {
                     if (value.is_undefined()) return false;
                     if (!value.is(Type::dict)) fail("Can only get item pairs from a mapping.");
                     const auto& entries = value.as<Dict>().entries();
                     if (index >= entries.size()) return false;
                     out = runtime.heap.tuple({entries[index].key, entries[index].value});
                     out.mark_input(value.from_input());
                     ++index;
                     return true;
                   }));
}

Value batch_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("batch", arguments, {"value", "linecount", "fill_with"}, 2);
  return generator(rt, make_iterator([source = LazySource(bound[0]), count = bound[1], fill = bound[2],
                                      next = Value()](Runtime& runtime, Value& out) mutable {
                     std::vector<Value> row;
                     if (!next.is_missing()) row.push_back(std::exchange(next, Value()));
                     Value item;
                     while (source.next(runtime, item)) {
                       // A row is given out when the item after it is there, and only when it has exactly
                       // `linecount` items.
                       if (equals(runtime, Value::integer(static_cast<int64_t>(row.size())), count)) {
                         next = std::move(item);
                         out = runtime.heap.list(std::move(row));
                         return true;
                       }
                       row.push_back(std::move(item));
                       if ((row.size() & 0xFFF) == 0) runtime.heap.check(row.size() * sizeof(Value));
                     }
                     if (row.empty()) return false;
                     if (!fill.is_missing() && !fill.is_none()) {
                       const int64_t missing = to_index("batch", count) - static_cast<int64_t>(row.size());
                       if (missing > 0) {
                         runtime.step(static_cast<uint64_t>(missing));
                         runtime.heap.check(static_cast<size_t>(missing) * sizeof(Value));
                         row.insert(row.end(), static_cast<size_t>(missing), fill);
                       }
                     }
                     out = runtime.heap.list(std::move(row));
                     return true;
                   }));
}

Value slice_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("slice", arguments, {"value", "slices", "fill_with"}, 2);
  return generator(
      rt, make_iterator([value = bound[0], count = bound[1], fill = bound[2], items = std::vector<Value>(),
                         number = int64_t{-1}](Runtime& runtime, Value& out) mutable {
        if (number < 0) {
          items = to_vector(runtime, value);
          number = 0;
          if (!count.is_number()) fail_type("slice", "an integer", count);
          if (compare_numbers(count, Value::integer(0)) == 0) fail("integer division or modulo by zero");
        }
        const int64_t slices = to_index("slice", count);
        if (number >= slices) return false;
        const int64_t length = static_cast<int64_t>(items.size());
        const int64_t each = length / slices;
        const int64_t longer = length % slices;
        const int64_t begin = number * each + std::min(number, longer);
        const int64_t end = begin + each + (number < longer ? 1 : 0);
        runtime.step(static_cast<uint64_t>(end - begin));
        std::vector<Value> part(items.begin() + begin, items.begin() + end);
        if (!fill.is_missing() && !fill.is_none() && number >= longer) part.push_back(fill);
        ++number;
        out = runtime.heap.list(std::move(part));
        return true;
      }));
}

}  // namespace

void add_selection_filters(FilterTable& table) {
  table["map"] = map_filter;
  table["select"] = selection_filter<true, false>;
  table["reject"] = selection_filter<false, false>;
  table["selectattr"] = selection_filter<true, true>;
  table["rejectattr"] = selection_filter<false, true>;
  table["unique"] = unique_filter;
  table["items"] = items_filter;
  table["batch"] = batch_filter;
  table["slice"] = slice_filter;
}

}  // namespace qwench::jinja
