#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/gguf.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "hub/cache.h"
#include "hub/gguf_choice.h"
#include "hub/snapshot_files.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr std::string_view kPrefix = "models--";

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code broken;
    if (entry->is_directory(broken)) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::optional<ModelName> name_of(const fs::path& folder) {
  std::string text = folder.filename().string();
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.erase(0, kPrefix.size());
  const size_t separator = text.find("--");
  if (separator == std::string::npos) return std::nullopt;
  return parse_model_name(text.replace(separator, 2, "/"));
}

std::map<std::string, std::vector<std::string>> refs_by_commit(const Cache& cache, const ModelName& model) {
  std::map<std::string, std::vector<std::string>> refs;
  for (auto& [revision, commit] : cache.refs(model)) refs[commit].push_back(revision);
  for (auto& [commit, names] : refs) std::sort(names.begin(), names.end());
  return refs;
}

void count(CachedModel& model, const std::vector<const SnapshotFile*>& files) {
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const SnapshotFile* file : files) {
    struct stat info {};
    if (::stat(file->content.c_str(), &info) != 0) continue;
    model.last_used = std::max({model.last_used, info.st_atime, info.st_mtime});
    if (seen.insert({info.st_dev, info.st_ino}).second) model.bytes += static_cast<uint64_t>(info.st_size);
  }
}

std::string text_field(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void describe_config(CachedModel& model, const fs::path& config) {
  try {
    const Json json = parse_json(read_text_file(config, kMaxConfigBytes), config.string());
    if (!json.is_object()) return;
    model.family = text_field(json, "model_type");
    model.dtype = text_field(json, "torch_dtype");
    if (model.dtype.empty()) model.dtype = text_field(json, "dtype");
    for (const auto& [full, usual] :
         {std::pair("float32", "f32"), {"float16", "f16"}, {"bfloat16", "bf16"}}) {
      if (model.dtype == full) model.dtype = usual;
    }
  } catch (const Error&) {
    // Listing goes on without; loading the model will say what is wrong.
  }
}

void describe_gguf(CachedModel& model) {
  try {
    const GgufFile file = GgufFile::open(model.path);
    model.family = file.string("general.architecture").value_or("");
    std::map<std::string_view, size_t> bytes;
    for (const GgufTensor& tensor : file.tensors())
      bytes[tensor.dtype ? qwench::name(*tensor.dtype) : tensor.type_name] += tensor.bytes.size();
    const auto most = std::max_element(bytes.begin(), bytes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != bytes.end()) model.dtype = most->first;
  } catch (const Error&) {
  }
}

bool is_complete(const GgufChoice& choice) { return choice.parts.size() == choice.part_count; }

std::vector<CachedModel> models_in(const Cache& cache, const CachedModel& base) {
  const std::vector<SnapshotFile> files = snapshot_files(cache.root(), base.path);
  std::vector<CachedModel> models;
  const std::vector<GgufChoice> choices = gguf_choices(paths_of(files));
  std::vector<const SnapshotFile*> others;
  const SnapshotFile* config = nullptr;
  bool has_safetensors = false;
  for (const SnapshotFile& file : files) {
    if (file.path.ends_with(".gguf")) continue;
    others.push_back(&file);
    has_safetensors |= file.path.ends_with(".safetensors");
    if (file.path == "config.json") config = &file;
  }
  for (const GgufChoice& choice : choices) {
    CachedModel model = base;
    const std::string label = choice.label();
    const bool clear = std::count_if(choices.begin(), choices.end(),
                                     [&](const GgufChoice& c) { return c.label() == label; }) == 1;
    model.name.choice = clear ? label : choice.parts.front();
    model.path = base.path / choice.parts.front();
    model.format = "gguf";
    std::vector<const SnapshotFile*> own;
    for (const SnapshotFile& file : files) {
      if (std::find(choice.parts.begin(), choice.parts.end(), file.path) != choice.parts.end())
        own.push_back(&file);
    }
    count(model, own);
    if (is_complete(choice)) describe_gguf(model);
    models.push_back(std::move(model));
  }
  if (has_safetensors || (choices.empty() && !others.empty())) {
    CachedModel model = base;
    model.format = has_safetensors ? "safetensors" : "none";
    count(model, others);
    if (config != nullptr) describe_config(model, config->content);
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

std::vector<CachedModel> Cache::list() const {
  std::vector<CachedModel> models;
  for (const fs::path& repository : folders_in(root_)) {
    const auto name = name_of(repository);
    if (!name || !is_inside(root_, repository)) continue;
    const auto refs = refs_by_commit(*this, *name);
    const auto usual = commit_of(*name);
    for (const fs::path& snapshot : folders_in(repository / "snapshots")) {
      CachedModel base;
      base.name = *name;
      base.commit = snapshot.filename().string();
      if (!is_safe_word(base.commit)) continue;
      if (const auto found = refs.find(base.commit); found != refs.end()) base.refs = found->second;
      if (base.commit != usual) base.name.revision = base.refs.empty() ? base.commit : base.refs.front();
      base.path = snapshot;
      for (CachedModel& model : models_in(*this, base)) models.push_back(std::move(model));
    }
  }
  std::stable_sort(models.begin(), models.end(),
                   [](const CachedModel& a, const CachedModel& b) { return a.name.text() < b.name.text(); });
  return models;
}

}  // namespace qwench::hub
