#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "hub/cache.h"
#include "hub/file_lock.h"
#include "hub/gguf_choice.h"
#include "hub/snapshot_files.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

uint64_t bytes_of(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return static_cast<uint64_t>(info.st_size);
}

uint64_t bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    bytes += bytes_of(entry->path());
  return bytes;
}

std::vector<fs::path> entries_in(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

// Deleting through a link would delete what lies elsewhere.
void refuse_links(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real_root = fs::canonical(root, error);
  if (error) return;
  const fs::path expected = real_root / path.lexically_relative(root);
  const fs::path real = fs::canonical(path, error);
  if (!error && real != expected) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: is a link to {}, outside of the cache; delete it by hand", path.string(),
                            real.string()));
  }
}

void lock_all(const fs::path& locks, const ModelName& model, std::vector<FileLock>& held) {
  for (const fs::path& file : entries_in(locks)) {
    if (file.extension() != ".lock") continue;
    std::optional<FileLock> lock = FileLock::try_acquire(file);
    if (!lock) {
      throw Error(ErrorKind::io,
                  fmt::format("{}: it is being pulled at this moment; nothing was deleted", model.repo()));
    }
    held.push_back(std::move(*lock));
  }
}

}  // namespace

Removal Cache::plan_removal(const ModelName& model) const {
  const fs::path repository = folder(model);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(repository, error))) {
    throw Error(ErrorKind::not_found, fmt::format("{}: it is not in {}; qwench models lists what is",
                                                  model.text(), root_.string()));
  }
  refuse_links(root_, repository);
  Removal removal;
  const fs::path locks = lock(model, "x").parent_path();
  const auto remove_all = [&] {
    removal.paths = {repository, locks};
    removal.bytes = bytes_below(repository);
    return removal;
  };
  if (model.choice.empty() && model.revision.empty()) return remove_all();

  const auto commit = commit_of(model);
  if (!commit) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: this revision is not in {}; qwench models lists what is", model.text(),
                            root_.string()));
  }
  const fs::path doomed = snapshot(model, *commit);
  refuse_links(root_, doomed);
  refuse_links(root_, repository / "blobs");
  const std::vector<SnapshotFile> files = snapshot_files(root_, doomed);
  std::vector<std::string> chosen = paths_of(files);
  if (!model.choice.empty()) chosen = choose_gguf(gguf_choices(chosen), model.choice, model.repo()).parts;

  std::set<fs::path> freed;
  for (const SnapshotFile& file : files) {
    if (std::find(chosen.begin(), chosen.end(), file.path) == chosen.end()) continue;
    if (chosen.size() < files.size()) removal.paths.push_back(file.entry);
    freed.insert(file.content);
  }
  bool others = false;
  for (const fs::path& other : entries_in(repository / "snapshots")) {
    for (const SnapshotFile& file : snapshot_files(root_, other)) {
      const bool goes = other == doomed && std::find(chosen.begin(), chosen.end(), file.path) != chosen.end();
      if (goes) continue;
      others = true;
      freed.erase(file.content);
    }
  }
  if (!others) return remove_all();
  if (chosen.size() == files.size()) {
    removal.paths.push_back(doomed);
    for (const auto& [revision, meant] : refs(model)) {
      if (meant == *commit) removal.paths.push_back(repository / "refs" / revision);
    }
  }
  for (const fs::path& blob : freed) {
    if (!is_inside(repository, blob)) continue;
    removal.bytes += bytes_of(blob);
    removal.paths.push_back(blob);
  }
  return removal;
}

void Cache::remove(const ModelName& model) const {
  const Removal removal = plan_removal(model);
  std::vector<FileLock> held;
  lock_all(lock(model, "x").parent_path(), model, held);
  for (const fs::path& path : removal.paths) {
    std::error_code error;
    fs::remove_all(path, error);  // does not follow links
    if (error)
      throw Error(ErrorKind::io, fmt::format("{}: cannot be deleted: {}", path.string(), error.message()));
  }
}

}  // namespace qwench::hub
