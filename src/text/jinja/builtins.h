#pragma once

#include <map>
#include <string_view>

#include "text/jinja/operations.h"

namespace qwench::jinja {

/// A filter or test of the language; the first positional argument is what it is applied to.
using FilterFunction = Value (*)(Runtime& rt, Arguments& arguments);
using TestFunction = bool (*)(Runtime& rt, Arguments& arguments);
using FilterTable = std::map<std::string_view, FilterFunction>;
using TestTable = std::map<std::string_view, TestFunction>;

/// Null when there is none of that name.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
inline bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }
inline bool has_test(std::string_view name) { return find_test(name) != nullptr; }

/// Spends steps for the strings that a call may look through: it takes a few of them a byte.
void charge_operands(Runtime& rt, const Value& self, const Arguments& arguments);

/// Calls them; scalars made from input are marked as input.
Value call_filter(Runtime& rt, FilterFunction filter, Arguments& arguments);
/// By the name in a value, as map('NAME') does; fails when there is none.
Value call_filter_named(Runtime& rt, const Value& name, Arguments& arguments);
bool call_test(Runtime& rt, TestFunction test, Arguments& arguments);
bool call_test_named(Runtime& rt, const Value& name, Arguments& arguments);

// Each file of filters adds its own.
void add_text_filters(FilterTable& table);
void add_html_filters(FilterTable& table);
void add_list_filters(FilterTable& table);
void add_selection_filters(FilterTable& table);
void add_number_filters(FilterTable& table);
void add_json_filter(FilterTable& table);
void add_pprint_filter(FilterTable& table);

/// The functions that every template can call: range, dict, namespace, cycler, joiner, raise_exception, ...
std::map<std::string, Value> make_globals(Runtime& rt);

/// str() or the string itself: what Jinja calls soft_str.
Value soft_string(Runtime& rt, const Value& value);

/// Python's float(text); nothing when it is no number.
std::optional<double> parse_real(Runtime& rt, std::string_view text);

/// "a.b.0" as a path of keys: numbers become integers. None: the value itself.
class AttributePath {
 public:
  AttributePath(Runtime& rt, const Value& attribute);
  Value get(Runtime& rt, const Value& item, const Value& otherwise = {}) const;

 private:
  std::vector<Value> keys_;
};

/// The lower case of strings, other values as they are.
Value ignore_case(Runtime& rt, const Value& value);

}  // namespace qwench::jinja
