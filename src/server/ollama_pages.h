#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "qwench/engine.h"

namespace qwench::server {

// Pages of Ollama's API about the served model, which has several names; of /api/tags and /api/ps, /api/show
// and /api/version. "digest" tells served models apart; it is no file's checksum.
Json ollama_models_page(const Engine& engine, const std::vector<std::string>& names);
Json ollama_show_page(const Engine& engine);
Json ollama_version_page();

}  // namespace qwench::server
