#pragma once

namespace qwench::cli {

/// Bytes a second that `threads` threads together read from memory: the best of several passes over half a
/// gigabyte.
double read_bandwidth(int threads);

}  // namespace qwench::cli
