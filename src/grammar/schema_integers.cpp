#include "grammar/schema_integers.h"

#include <fmt/format.h>

#include "core/large_integers.h"
#include "qwench/error.h"

namespace qwench {

void refuse_rounded_integers(const Json& schema, const std::string& what, const std::string& keyword) {
  if (const auto digits = large_integer(schema)) {
    const bool negative = digits->front() == '-';
    const bool far = negative ? keyword == "minimum" || keyword == "exclusiveMinimum"
                              : keyword == "maximum" || keyword == "exclusiveMaximum";
    if (far || fmt::format("{:.0f}", with_doubles(schema).get<double>()) == *digits) return;
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: {}: the whole number {} needs more than 64 bits, which is not supported; give one "
                    "of at most 64 bits, or a string",
                    what, keyword, *digits));
  }
  if (!has_large_integers(schema)) return;
  if (schema.is_array()) {
    for (const Json& item : schema) refuse_rounded_integers(item, what, keyword);
    return;
  }
  for (const auto& [name, item] : schema.items()) {
    if (name == "default" || name == "examples" || name == "example") continue;
    refuse_rounded_integers(item, what, name);
  }
}

}  // namespace qwench
