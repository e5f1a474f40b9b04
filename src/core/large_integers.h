#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "qwench/error.h"

namespace qwench {

// Integers beyond 64 bits, for which Json has no type: binary values, of which JSON text has none, hold their
// digits.

/// Of a key that an object has twice: whether its last value counts, as to other readers, or it is an error.
enum class SameKeys { last_counts, are_errors };

/// Its sentence names the place.
class RepeatedKey : public Error {
 public:
  RepeatedKey(const std::string& what, const std::string& place);
  const std::string& place() const noexcept { return place_; }  ///< "messages[0].role"

 private:
  std::string place_;
};

/// parse_json() that keeps them, where it makes doubles of them. Those beyond a double's range are errors for
/// both. Throws RepeatedKey too, where `same_keys` says so.
Json parse_json_exactly(std::string_view text, const std::string& what, int max_depth = 200,
                        SameKeys same_keys = SameKeys::last_counts);

/// The digits of such an integer, with a minus where it is negative; absent for other values.
std::optional<std::string> large_integer(const Json& value);
bool has_large_integers(const Json& value);
/// The same with doubles in their place.
Json with_doubles(const Json& value);

/// "object", "number", ...
const char* json_type(const Json& value);

/// One line of JSON text, without newline and spaces; large integers by their digits, ill-formed UTF-8 as
/// U+FFFD.
std::string json_line(const Json& value);

}  // namespace qwench
