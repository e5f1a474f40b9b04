#pragma once

#include <string_view>

#include "text/jinja/things.h"

namespace qwench::jinja {

/// The method of a string, list, tuple, dict or number; null when its type has none of that name.
NativeFunction find_method(const Value& value, std::string_view name);

// One table a type (string_methods.cpp, string_tests.cpp, container_methods.cpp).
NativeFunction find_string_method(std::string_view name);
NativeFunction find_string_test(std::string_view name);
NativeFunction find_list_method(std::string_view name);
NativeFunction find_tuple_method(std::string_view name);
NativeFunction find_dict_method(std::string_view name);
NativeFunction find_number_method(const Value& number, std::string_view name);

/// dict(...) and dict.fromkeys(...).
Value make_dict(Runtime& rt, const Value& self, Arguments& arguments);
Value dict_from_keys(Runtime& rt, const Value& self, Arguments& arguments);

}  // namespace qwench::jinja
