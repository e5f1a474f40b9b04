#pragma once

#include <string>

namespace qwench {

/// Warnings and details go here, one sentence a call. The default sink writes "qwench: warning: ..." to
/// stderr and drops details; programs may replace it. Thread-safe.
enum class LogLevel { detail, warning, silent };

void set_log_level(LogLevel lowest);  ///< detail shows everything, silent nothing
void log(LogLevel level, const std::string& message);
inline void log_warning(const std::string& message) { log(LogLevel::warning, message); }
inline void log_detail(const std::string& message) { log(LogLevel::detail, message); }

}  // namespace qwench
