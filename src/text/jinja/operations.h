#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace qwench::jinja {

// The operations of Python's values that templates use, with Python's results and (in kind) its failures.

// --- Conversion (convert.cpp)

std::string type_name(const Value& value);                 ///< type(x).__name__
TrackedText to_text(Runtime& rt, const Value& value);      ///< str(x)
TrackedText repr(Runtime& rt, const Value& value);         ///< repr(x)
TrackedText escape_html(Runtime& rt, const Value& value);  ///< markupsafe.escape(x)
TrackedText escape_html(const TrackedText& text);
/// The text of a string without a copy, else str(x) kept in `storage`.
const TrackedText& text_of(Runtime& rt, const Value& value, TrackedText& storage);
bool is_markup(const Value& value);
std::string real_repr(double value);

// --- Truth and comparison (compare.cpp)

bool truthy(Runtime& rt, const Value& value);
bool equals(Runtime& rt, const Value& a, const Value& b);
bool compare(Runtime& rt, Operator op, const Value& a, const Value& b);
bool less(Runtime& rt, const Value& a, const Value& b);
bool contains(Runtime& rt, const Value& container, const Value& item);
bool is_same(const Value& a, const Value& b);  ///< a is b
/// -1, 0 or 1 for two numbers that are no NaN.
int compare_numbers(const Value& a, const Value& b);

// --- Arithmetic (arithmetic.cpp)

Value binary(Runtime& rt, Operator op, const Value& a, const Value& b);
Value unary(Runtime& rt, Operator op, const Value& a);
Value concatenate(Runtime& rt, const std::vector<Value>& items);  ///< the operator ~
BigInt to_bigint(const Value& integer);
double to_double(const Value& number);  ///< fails when an integer is too large

// --- Items and attributes (access.cpp)

Value get_attribute(Runtime& rt, const Value& object, std::string_view name);  ///< x.name in a template
Value get_item(Runtime& rt, const Value& object, const Value& key);            ///< x[key] in a template
/// Python's getattr without the sandbox: missing when there is none.
Value python_attribute(Runtime& rt, const Value& object, std::string_view name);
/// Is a method of this name refused because it changes a list or dict?
bool is_mutating(const Value& object, std::string_view name);
Value slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step);
/// Python's slice.indices for a length; missing or none bounds take their defaults.
struct SliceRange {
  int64_t start, step, count;
};
SliceRange slice_range(const Value& start, const Value& stop, const Value& step, int64_t length);
Value substring(Runtime& rt, const String& text, size_t begin, size_t end);  ///< in bytes
/// The `index`th code point as a string.
Value character(Runtime& rt, const String& text, size_t index);

// --- Iteration (iterate.cpp)

IteratorPtr iterate(Runtime& rt, const Value& value);  ///< fails when not iterable
bool is_iterable(Runtime& rt, const Value& value);
std::vector<Value> to_vector(Runtime& rt, const Value& value);   ///< list(x)
IteratorPtr iterate_reversed(Runtime& rt, const Value& value);   ///< reversed(x); null when it cannot
std::optional<int64_t> length(Runtime& rt, const Value& value);  ///< len(x), or nothing
/// An iterator as a value that a template can hold; it is spent once.
Value generator(Runtime& rt, IteratorPtr iterator, const char* type = "generator");

// --- Calls (calls.cpp)

Value call(Runtime& rt, const Value& callee, Arguments arguments);
bool is_callable(const Value& value);

/// Fails with Python's TypeError for a value of the wrong type: "FUNCTION: expected WANTED, not TYPE".
[[noreturn]] void fail_type(std::string_view function, std::string_view wanted, const Value& value);
[[noreturn]] void fail_undefined(const Value& undefined);
int64_t to_index(std::string_view function, const Value& value);  ///< an int, clamped to 64 bits
const String& to_string_argument(std::string_view function, const Value& value);

/// Binds arguments to parameters by position and name, as Python does; parameters without argument are
/// missing.
std::vector<Value> bind(std::string_view function, Arguments& arguments,
                        std::initializer_list<const char*> parameters, size_t required);
/// For functions that take no names: between `least` and `most` arguments; the rest are missing.
std::vector<Value> bind_positional(std::string_view function, Arguments& arguments, size_t least,
                                   size_t most);

}  // namespace qwench::jinja
