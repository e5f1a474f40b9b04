#pragma once

#include "core/json.h"

namespace qwench::server {

/// The API in OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0): every route of routes(), with the bodies
/// that the parser checks against.
const Json& openapi_document();

}  // namespace qwench::server
