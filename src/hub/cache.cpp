#include "hub/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "checkpoint/printable.h"
#include "core/mapped_file.h"
#include "hub/gguf_choice.h"
#include "hub/snapshot_files.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRefBytes = 4096;

std::string folder_name(const ModelName& model) {
  return fmt::format("models--{}--{}", model.org, model.name);
}

[[noreturn]] void fail(const fs::path& path, const char* what, const std::error_code& error) {
  throw Error(ErrorKind::io, fmt::format("{}: cannot {}: {}", path.string(), what, error.message()));
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path, "be made", error);
}

std::optional<std::string> read_ref(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::string commit;
  try {
    commit = read_text_file(path, kMaxRefBytes);
  } catch (const Error&) {
    return std::nullopt;
  }
  while (commit.ends_with('\n') || commit.ends_with('\r') || commit.ends_with(' ')) commit.pop_back();
  if (!is_safe_word(commit)) return std::nullopt;
  return commit;
}

}  // namespace

std::string name_of_snapshot(const fs::path& path) {
  const fs::path snapshots = path.parent_path();
  const std::string repository = snapshots.parent_path().filename().string();
  const size_t separator = repository.rfind("--");
  if (snapshots.filename() != "snapshots" || !repository.starts_with("models--")) return "";
  return repository.substr(separator + 2);
}

fs::path Cache::folder(const ModelName& model) const { return root_ / folder_name(model); }

fs::path Cache::blob(const ModelName& model, const std::string& etag) const {
  return folder(model) / "blobs" / etag;
}

fs::path Cache::snapshot(const ModelName& model, const std::string& commit) const {
  return folder(model) / "snapshots" / commit;
}

fs::path Cache::lock(const ModelName& model, const std::string& etag) const {
  return root_ / ".locks" / folder_name(model) / (etag + ".lock");
}

std::optional<std::string> Cache::commit_of(const ModelName& model) const {
  const fs::path refs = folder(model) / "refs";
  std::error_code error;
  if (model.revision.empty()) {
    for (const char* usual : {"main", "master"}) {
      const auto commit = read_ref(refs / usual);
      if (commit && fs::is_directory(snapshot(model, *commit), error)) return commit;
    }
    return std::nullopt;
  }
  if (const auto commit = read_ref(refs / model.revision)) return commit;
  if (is_safe_word(model.revision) && fs::is_directory(snapshot(model, model.revision), error))
    return model.revision;
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Cache::refs(const ModelName& model) const {
  std::vector<std::pair<std::string, std::string>> refs;
  const fs::path below = folder(model) / "refs";
  std::error_code error;
  fs::recursive_directory_iterator entry(below, error);  // those with a slash lie in folders
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    ModelName named = model;
    named.revision = entry->path().lexically_relative(below).generic_string();
    std::error_code broken;
    if (!is_safe_path(named.revision) || !entry->is_regular_file(broken)) continue;
    if (auto commit = commit_of(named)) refs.emplace_back(named.revision, std::move(*commit));
  }
  return refs;
}

std::optional<fs::path> Cache::find(const ModelName& model) const {
  const auto commit = commit_of(model);
  if (!commit) return std::nullopt;
  const fs::path folder = snapshot(model, *commit);
  const std::vector<SnapshotFile> files = snapshot_files(root_, folder);
  if (files.empty()) return std::nullopt;
  const bool has_safetensors = std::any_of(files.begin(), files.end(), [](const SnapshotFile& file) {
    return file.path.ends_with(".safetensors");
  });
  const std::vector<GgufChoice> choices = gguf_choices(paths_of(files));
  if (model.choice.empty() && (has_safetensors || choices.empty())) return folder;
  try {
    return folder / choose_gguf(choices, model.choice, model.repo()).parts.front();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found) return std::nullopt;  // another one of this repository is here
    throw;
  }
}

void Cache::link(const ModelName& model, const std::string& commit, const std::string& path,
                 const std::string& etag) const {
  const fs::path place = snapshot(model, commit) / path;
  make_folder(place.parent_path());
  const fs::path target = blob(model, etag).lexically_relative(place.parent_path());
  std::error_code error;
  if (fs::read_symlink(place, error) == target && !error) return;
  fs::path fresh = place;
  fresh += fmt::format(".{}.link", ::getpid());
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (error) fail(fresh, "be made a link", error);
  fs::rename(fresh, place, error);
  if (error) fail(place, "be made a link", error);
}

void Cache::set_ref(const ModelName& model, const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const fs::path place = folder(model) / "refs" / revision;
  make_folder(place.parent_path());
  const fs::path fresh = folder(model) / fmt::format(".ref.{}", ::getpid());
  std::ofstream(fresh) << commit << std::flush;
  std::error_code error;
  fs::rename(fresh, place, error);
  if (error || read_ref(place) != commit)
    fail(place, "be written", error ? error : std::make_error_code(std::errc::io_error));
}

}  // namespace qwench::hub
