#pragma once

namespace qwench::server {

inline constexpr const char* kVersion = QWENCH_VERSION;
inline constexpr const char* kSystemFingerprint = "qwench-" QWENCH_VERSION;

}  // namespace qwench::server
