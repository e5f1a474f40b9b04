#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace qwench {

/// Keeps the order of keys, as templates and round trips need.
using Json = nlohmann::ordered_json;

/// Strict JSON (no comments, no NaN), at most `max_depth` nested arrays and objects. Of a key that an object
/// has twice the last value counts. Throws Error (malformed) that begins with `what`, e.g. a file name, and
/// says at which byte.
Json parse_json(std::string_view text, const std::string& what, int max_depth = 200);

}  // namespace qwench
