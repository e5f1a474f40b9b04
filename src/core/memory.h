#pragma once

#include <cstdint>

namespace qwench {

/// Bytes this process may still take without swapping: the machine's available memory, cut to the cgroup's
/// limit. Pages of mapped files that could be dropped count as available.
uint64_t available_memory();

/// The most memory this process has had resident, in bytes.
uint64_t peak_memory();

}  // namespace qwench
