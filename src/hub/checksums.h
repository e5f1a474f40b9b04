#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/thread_pool.h"

namespace qwench::hub {

/// A file and what its bytes must give.
struct Checksum {
  std::filesystem::path file;
  uint64_t bytes = 0;
  std::string expected;  ///< lower-case digits: 64 of SHA-256, or 40 of git's SHA-1 of a file
  std::string source;    ///< who says so: "SHA256SUMS", "the hub"
};

/// The checksums that are known of a model's files: `path` is its folder or its .gguf file. They come from a
/// file SHA256SUMS beside them (as sha256sum writes it) and, in the hub's cache, from the names of the blobs.
/// Empty where there are none. Throws Error (malformed) for a SHA256SUMS that cannot be read or names a file
/// outside the folder, not_found for a file that it names and that is not there.
std::vector<Checksum> known_checksums(const std::filesystem::path& path);

/// One sentence for each file whose bytes do not give its checksum, in their order. Reads all of them, some
/// at a time. `progress` is called now and then, from one thread, with the share done. Ends early when `stop`
/// is asked for. Throws Error (io).
std::vector<std::string> wrong_checksums(const std::vector<Checksum>& checksums, ThreadPool& pool,
                                         const std::function<void(double)>& progress,
                                         const std::stop_token& stop);

}  // namespace qwench::hub
