#pragma once

#include <optional>
#include <string>

#include "qwench/request.h"

namespace qwench::cli {

/// The value of --pooling; absent for "". Throws UsageError.
std::optional<Pooling> pooling_flag(const std::string& word);

}  // namespace qwench::cli
