#pragma once

#include <filesystem>
#include <string>

namespace qwench {

/// The value of an environment variable; empty when it is not set.
std::string environment(const char* name);

/// Where this program keeps what it fetched or measured: QWENCH_CACHE, or qwench in XDG_CACHE_HOME or
/// ~/.cache.
std::filesystem::path cache_folder();

}  // namespace qwench
