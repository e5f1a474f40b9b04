#include <fmt/format.h>

#include <limits>

#include "text/jinja/operations.h"

namespace qwench::jinja {

Value call(Runtime& rt, const Value& callee, Arguments arguments) {
  rt.step();
  if (callee.is_undefined()) fail_undefined(callee);
  if (!is_callable(callee)) fail("'" + type_name(callee) + "' object is not callable");
  const Runtime::Nesting nesting(rt);
  return callee.as<Thing>().call(rt, std::move(arguments));
}

bool is_callable(const Value& value) {
  if (value.is_undefined()) return true;  // its class has __call__, which fails
  return value.is(Type::thing) && value.as<Thing>().callable();
}

void fail_undefined(const Value& undefined) {
  const Undefined& info = undefined.as<Undefined>();
  fail(info.kind, info.message);
}

void fail_type(std::string_view function, std::string_view wanted, const Value& value) {
  fail(fmt::format("{}: expected {}, not {}", function, wanted, type_name(value)));
}

int64_t to_index(std::string_view function, const Value& value) {
  if (value.is_small_integer()) return value.as_integer();
  if (value.is(Type::big_integer)) {
    return value.as<BigInteger>().value.negative() ? std::numeric_limits<int64_t>::min()
                                                   : std::numeric_limits<int64_t>::max();
  }
  fail_type(function, "an integer", value);
}

const String& to_string_argument(std::string_view function, const Value& value) {
  if (!value.is_string()) fail_type(function, "a string", value);
  return value.as<String>();
}

std::vector<Value> bind(std::string_view function, Arguments& arguments,
                        std::initializer_list<const char*> parameters, size_t required) {
  if (arguments.positional.size() > parameters.size()) {
    fail(fmt::format("{}() takes at most {} arguments ({} given)", function, parameters.size(),
                     arguments.positional.size()));
  }
  std::vector<Value> bound = std::move(arguments.positional);
  const size_t positional = bound.size();
  bound.resize(parameters.size());
  for (auto& [name, value] : arguments.named) {
    size_t index = 0;
    for (const char* parameter : parameters) {
      if (name == parameter) break;
      ++index;
    }
    if (index == parameters.size())
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    if (index < positional) fail(fmt::format("{}() got multiple values for argument '{}'", function, name));
    bound[index] = std::move(value);
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound[i].is_missing()) {
      fail(fmt::format("{}() missing required argument '{}'", function, *(parameters.begin() + i)));
    }
  }
  return bound;
}

std::vector<Value> bind_positional(std::string_view function, Arguments& arguments, size_t least,
                                   size_t most) {
  if (!arguments.named.empty()) fail(fmt::format("{}() takes no keyword arguments", function));
  const size_t given = arguments.positional.size();
  if (given < least || given > most) {
    fail(fmt::format("{}() takes {} argument{} ({} given)", function,
                     least == most ? std::to_string(least) : fmt::format("from {} to {}", least, most),
                     most == 1 ? "" : "s", given));
  }
  std::vector<Value> bound = std::move(arguments.positional);
  bound.resize(most);
  return bound;
}

}  // namespace qwench::jinja
