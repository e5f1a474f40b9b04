#include "text/jinja/builtins.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/methods.h"
#include "text/jinja/strftime.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/things.h"

namespace qwench::jinja {
namespace {

const FilterTable& filters() {
  static const FilterTable table = [] {
    FilterTable all;
    add_text_filters(all);
    add_html_filters(all);
    add_list_filters(all);
    add_selection_filters(all);
    add_number_filters(all);
    add_json_filter(all);
    add_pprint_filter(all);
    return all;
  }();
  return table;
}

// --- Globals

Value make_range(Runtime& rt, const Value&, Arguments& arguments) {
  constexpr int64_t kMaxRange = 100000;  // of the sandbox
  const auto bound = bind_positional("range", arguments, 1, 3);
  int64_t limits[3] = {0, 0, 1};
  if (bound[1].is_missing()) {
    limits[1] = to_index("range", bound[0]);
  } else {
    limits[0] = to_index("range", bound[0]);
    limits[1] = to_index("range", bound[1]);
    if (!bound[2].is_missing()) limits[2] = to_index("range", bound[2]);
  }
  if (limits[2] == 0) fail("range() arg 3 must not be zero");
  Value range = rt.heap.thing<Range>(limits[0], limits[1], limits[2]);
  if (range.as<Range>().length(rt).value_or(0) > kMaxRange) {
    fail(fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  }
  return range;
}

Value make_namespace(Runtime& rt, const Value& self, Arguments& arguments) {
  Value attributes = make_dict(rt, self, arguments);
  for (const auto& [key, value] : attributes.as<Dict>().entries()) {
    if (key.is_string()) Namespace::check_name(key.as<String>().text.view());
  }
  return rt.heap.thing<Namespace>(rt.heap, std::move(attributes));
}

Value make_cycler(Runtime& rt, const Value&, Arguments& arguments) {
  if (!arguments.named.empty()) fail("cycler() got an unexpected keyword argument");
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  return rt.heap.thing<Cycler>(std::move(arguments.positional));
}

Value make_joiner(Runtime& rt, const Value&, Arguments& arguments) {
  const auto bound = bind("joiner", arguments, {"sep"}, 0);
  return rt.heap.thing<Joiner>(bound[0].is_missing() ? rt.heap.string(", ") : bound[0]);
}

Value raise_exception(Runtime& rt, const Value&, Arguments& arguments) {
  const auto bound = bind("raise_exception", arguments, {"message"}, 1);
  fail(TemplateErrorKind::raise_exception, to_text(rt, bound[0]).str());
}

Value strftime_now(Runtime& rt, const Value&, Arguments& arguments) {
  const auto bound = bind("strftime_now", arguments, {"format"}, 1);
  const TrackedText& format = to_string_argument("strftime", bound[0]).text;
  rt.work(format.size() * 16);
  TrackedText out;
  out.append(format_time(format.view(), rt.now), format.has_input());
  rt.check_size(out.size());
  return rt.heap.string(std::move(out));
}

Value lipsum(Runtime&, const Value&, Arguments&) {
  fail("lipsum() makes random text, which a prompt must not depend on: it is not supported");
}

}  // namespace

FilterFunction find_filter(std::string_view name) {
  const auto found = filters().find(name);
  return found == filters().end() ? nullptr : found->second;
}

void charge_operands(Runtime& rt, const Value& self, const Arguments& arguments) {
  constexpr size_t kTimes = 16;  // what the slower methods take, measured against one step
  size_t bytes = 0;
  const auto count = [&](const Value& value) {
    if (value.is_string()) bytes += value.as<String>().text.size();
  };
  count(self);
  for (const Value& each : arguments.positional) count(each);
  for (const auto& [name, each] : arguments.named) count(each);
  rt.work(bytes * kTimes);
}

Value call_filter(Runtime& rt, FilterFunction filter, Arguments& arguments) {
  charge_operands(rt, Value(), arguments);
  bool input = false;
  for (const Value& each : arguments.positional) input = input || touches_input(each);
  for (const auto& [name, each] : arguments.named) input = input || touches_input(each);
  Value result = filter(rt, arguments);
  return input && !result.is_string() ? result.mark_input() : result;
}

Value call_filter_named(Runtime& rt, const Value& name, Arguments& arguments) {
  const FilterFunction filter = name.is_string() ? find_filter(name.as<String>().text.view()) : nullptr;
  if (filter == nullptr) fail("No filter named " + repr(rt, name).str() + ".");
  return call_filter(rt, filter, arguments);
}

bool call_test(Runtime& rt, TestFunction test, Arguments& arguments) {
  charge_operands(rt, Value(), arguments);
  return test(rt, arguments);
}

bool call_test_named(Runtime& rt, const Value& name, Arguments& arguments) {
  const TestFunction test = name.is_string() ? find_test(name.as<String>().text.view()) : nullptr;
  if (test == nullptr) fail("No test named " + repr(rt, name).str() + ".");
  return call_test(rt, test, arguments);
}

std::map<std::string, Value> make_globals(Runtime& rt) {
  std::map<std::string, Value> globals;
  const auto add = [&](const char* name, NativeFunction function, bool is_type) {
    globals[name] = rt.heap.thing<Function>(name, function, Value(), is_type);
  };
  add("range", make_range, false);
  add("dict", make_dict, true);
  add("namespace", make_namespace, true);
  add("cycler", make_cycler, true);
  add("joiner", make_joiner, true);
  add("lipsum", lipsum, false);
  add("raise_exception", raise_exception, false);
  add("strftime_now", strftime_now, false);
  return globals;
}

Value soft_string(Runtime& rt, const Value& value) {
  return value.is_string() ? value : rt.heap.string(to_text(rt, value));
}

Value ignore_case(Runtime& rt, const Value& value) {
  if (!value.is_string()) return value;
  rt.work(value.as<String>().text.size() * 8);
  return rt.heap.string(change_case(value.as<String>().text, LetterCase::lower));
}

AttributePath::AttributePath(Runtime& rt, const Value& attribute) {
  if (attribute.is_missing() || attribute.is_none()) return;
  if (!attribute.is_string()) {
    keys_.push_back(attribute);
    return;
  }
  const String& path = attribute.as<String>();
  for (const ByteSpan& part : split_on(rt, path.text.view(), ".", -1)) {
    const std::string_view text = path.text.view().substr(part.begin, part.end - part.begin);
    const bool number = !text.empty() && text.size() < 18 &&
                        std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    keys_.push_back(number ? Value::integer(std::stoll(std::string(text)))
                           : substring(rt, path, part.begin, part.end));
  }
}

Value AttributePath::get(Runtime& rt, const Value& item, const Value& otherwise) const {
  Value value = item;
  for (const Value& key : keys_) {
    value = get_item(rt, value, key);
    if (value.is_undefined() && !otherwise.is_missing() && !otherwise.is_none()) value = otherwise;
  }
  return value;
}

}  // namespace qwench::jinja
