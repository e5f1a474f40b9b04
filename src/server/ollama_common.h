#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"

namespace qwench::server {

/// A served model's name as Ollama's clients write it: "NAME:latest" is NAME.
std::string ollama_model_name(const std::string& name);
int64_t nanoseconds_of(double seconds);
/// "2026-01-31T12:00:00Z"
std::string utc_time(int64_t seconds_since_epoch);
/// A number of parameters as Ollama writes it: "494.03M", "1.5B", "8B".
std::string ollama_count(int64_t count);
Json ollama_keep_alive_field();

}  // namespace qwench::server
