#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qwench::hub {

/// A file of a snapshot.
struct SnapshotFile {
  std::string path;               ///< in the snapshot, with slashes
  std::filesystem::path entry;    ///< the link, or the file itself
  std::filesystem::path content;  ///< where the bytes are, all links resolved
};

/// The files of a snapshot whose bytes lie in the cache at `root`, sorted by path. Links that are broken or
/// lead elsewhere are left out, links to folders are not followed.
std::vector<SnapshotFile> snapshot_files(const std::filesystem::path& root,
                                         const std::filesystem::path& snapshot);

/// `path` with all links resolved lies in `root` with all links resolved.
bool is_inside(const std::filesystem::path& root, const std::filesystem::path& path);

std::vector<std::string> paths_of(const std::vector<SnapshotFile>& files);

}  // namespace qwench::hub
