#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "qwench/engine.h"

namespace qwench::server {

/// An entry of /v1/models; `engine` is null while it loads.
Json model_page(const Engine* engine, const std::string& name);
/// /props: the model, the settings of a request that names none, its template, the limits.
Json props_page(const Engine& engine, const std::vector<std::string>& names);

/// "%2F" as "/"; what is no such escape stays.
std::string percent_decoded(std::string_view text);

}  // namespace qwench::server
