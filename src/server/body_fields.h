#pragma once

#include <fmt/format.h>

#include <string>

#include "core/json.h"
#include "server/api_error.h"

namespace qwench::server {

/// A 400 that names the field, with what is wrong with it.
[[noreturn]] inline void refuse_field(const std::string& param, const std::string& sentence) {
  throw ApiError(400, fmt::format("{}: {}", param, sentence), param);
}

/// A field's value; null where it is absent or null.
inline const Json* given(const Json& body, const char* name) {
  const auto found = body.find(name);
  return found == body.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace qwench::server
