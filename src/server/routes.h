#pragma once

#include <span>
#include <string_view>

#include "server/api_error.h"

namespace qwench::server {

/// One path of the API. The table is what the service answers and what /openapi.json lists.
struct Route {
  std::string_view path;  ///< "/v1/models/{model}": the rest of the path, from there on
  std::string_view method;
  std::string_view summary;
  bool needs_key = true;
  bool needs_model = true;  ///< answered with a 503 while there is none
  ErrorShape errors = ErrorShape::openai;
};

std::span<const Route> routes();
/// The route of a path; null where there is none. HEAD is for every GET.
const Route* find_route(std::string_view path);
/// How errors on this path are written.
ErrorShape errors_of(std::string_view path);

}  // namespace qwench::server
