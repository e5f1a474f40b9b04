#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hub/model_name.h"

namespace qwench::hub {

/// One model that lies in the cache: a snapshot's folder, or one GGUF model in it.
struct CachedModel {
  ModelName name;  ///< as it can be given for MODEL; the revision is left out where it is the default one
  std::string commit;
  std::vector<std::string> refs;  ///< branches and tags that mean this commit
  std::filesystem::path path;     ///< what Checkpoint::open takes
  uint64_t bytes = 0;             ///< of its files, each content once
  std::string format;             ///< "safetensors", "gguf", or "none" where there are no weights
  std::string dtype;              ///< of most weights: "bf16", "q4_k"; empty where it cannot be told
  std::string family;             ///< "qwen3"; the same
  std::time_t last_used = 0;
};

/// "Qwen3-0.6B" for the folder of a snapshot of that model, which itself is called by its commit; else empty.
std::string name_of_snapshot(const std::filesystem::path& path);

/// What `qwench models rm` is to delete.
struct Removal {
  std::vector<std::filesystem::path>
      paths;           ///< files, links and folders, in order; folders with all below them
  uint64_t bytes = 0;  ///< what this frees
};

/// The folder in which huggingface_hub keeps models
/// (huggingface.co/docs/huggingface_hub/guides/manage-cache):
///
///     models--ORG--NAME/refs/REVISION                 holds a commit
///     models--ORG--NAME/blobs/ETAG                    a file's content
///     models--ORG--NAME/snapshots/COMMIT/PATH         a link to ../../blobs/ETAG
///     .locks/models--ORG--NAME/ETAG.lock
///
/// Its content is not trusted: names are checked, links that lead out of it are neither read nor counted nor
/// followed when something is deleted.
class Cache {
 public:
  explicit Cache(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path folder(const ModelName& model) const;
  std::filesystem::path blob(const ModelName& model, const std::string& etag) const;
  std::filesystem::path snapshot(const ModelName& model, const std::string& commit) const;
  std::filesystem::path lock(const ModelName& model, const std::string& etag) const;

  /// The commit that model.revision means here; without a revision, main and then master are looked up.
  std::optional<std::string> commit_of(const ModelName& model) const;

  /// Each branch and tag that is kept of the repository, and the commit that it means.
  std::vector<std::pair<std::string, std::string>> refs(const ModelName& model) const;

  /// What Checkpoint::open takes for this name: the snapshot's folder or a .gguf file. Empty when it is not
  /// in the cache. Throws Error (invalid_argument) when it is not clear which GGUF model is meant.
  std::optional<std::filesystem::path> find(const ModelName& model) const;

  /// Lets PATH of the snapshot be the blob. Throws Error (io).
  void link(const ModelName& model, const std::string& commit, const std::string& path,
            const std::string& etag) const;
  /// Lets the revision mean the commit. Throws Error (io).
  void set_ref(const ModelName& model, const std::string& revision, const std::string& commit) const;

  std::vector<CachedModel> list() const;  ///< sorted by name; what is broken is left out

  /// A name alone means all that is kept of the repository; with a choice or a revision, only that. Throws
  /// Error: not_found; invalid_argument where the cache's folders are links to elsewhere.
  Removal plan_removal(const ModelName& model) const;
  /// Throws Error (io); also when it is just being pulled.
  void remove(const ModelName& model) const;

 private:
  std::filesystem::path root_;
};

}  // namespace qwench::hub
