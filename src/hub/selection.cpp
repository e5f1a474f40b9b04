#include "hub/selection.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "hub/gguf_choice.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

constexpr std::array kCompanions = {
    "config.json",        "generation_config.json",
    "tokenizer.json",     "tokenizer_config.json",
    "vocab.json",         "merges.txt",
    "tokenizer.model",    "special_tokens_map.json",
    "added_tokens.json",  "chat_template.jinja",
    "chat_template.json", "model.safetensors.index.json",
};

bool matches_any(const std::string& path, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    const std::string whole = pattern.ends_with('/') ? pattern + "*" : pattern;
    return fnmatch(whole.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
  });
}

bool contains(const Listing& listing, const std::string& path) {
  return std::any_of(listing.files.begin(), listing.files.end(),
                     [&](const RemoteFile& file) { return file.path == path; });
}

bool is_companion(const std::string& path) {
  return std::find(kCompanions.begin(), kCompanions.end(), path) != kCompanions.end() ||
         (path.starts_with("additional_chat_templates/") && path.ends_with(".jinja"));
}

bool is_root_safetensors(const std::string& path) {
  return path.ends_with(".safetensors") && path.find('/') == std::string::npos;
}

// As find_safetensors has it (checkpoint/safetensors_folder.h): an index, else model.safetensors, else all.
// Which shards an index names is known only once it is here.
bool is_loaded_weight(const std::string& path, const Listing& listing) {
  if (!is_root_safetensors(path)) return false;
  if (contains(listing, "model.safetensors.index.json"))
    return !path.starts_with("consolidated") && !path.starts_with("adapter_");
  return !contains(listing, "model.safetensors") || path == "model.safetensors";
}

Selection select_gguf(const Listing& listing, const ModelName& model) {
  std::vector<std::string> paths;
  for (const RemoteFile& file : listing.files) paths.push_back(file.path);
  const std::vector<GgufChoice> choices = gguf_choices(paths);
  if (choices.empty() && model.choice.empty()) {
    throw Error(
        ErrorKind::not_found,
        fmt::format(
            "{}: it has neither *.safetensors nor *.gguf files; name a repository with weights that this "
            "program reads, or choose files by --include",
            model.repo()));
  }
  const GgufChoice& choice = choose_gguf(choices, model.choice, model.repo());
  if (choice.parts.size() != choice.part_count) {
    throw Error(ErrorKind::malformed, fmt::format("{}: of {} there are only {} of {} parts", model.repo(),
                                                  choice.stem, choice.parts.size(), choice.part_count));
  }
  Selection selection;
  selection.gguf = choice.parts.front();
  for (const RemoteFile& file : listing.files) {
    if (std::find(choice.parts.begin(), choice.parts.end(), file.path) != choice.parts.end())
      selection.files.push_back(file);
  }
  return selection;
}

Selection select_by_default(const Listing& listing, const ModelName& model) {
  const bool is_folder = std::any_of(listing.files.begin(), listing.files.end(),
                                     [](const RemoteFile& file) { return is_root_safetensors(file.path); });
  if (!model.choice.empty() || !is_folder) return select_gguf(listing, model);
  Selection selection;
  for (const RemoteFile& file : listing.files) {
    if (is_companion(file.path) || is_loaded_weight(file.path, listing)) selection.files.push_back(file);
  }
  return selection;
}

}  // namespace

Selection select_files(const Listing& listing, const ModelName& model, const Filter& filter) {
  Selection selection;
  if (filter.include.empty()) {
    selection = select_by_default(listing, model);
  } else {
    for (const RemoteFile& file : listing.files) {
      if (matches_any(file.path, filter.include)) selection.files.push_back(file);
    }
  }
  std::erase_if(selection.files,
                [&](const RemoteFile& file) { return matches_any(file.path, filter.exclude); });
  if (!std::any_of(selection.files.begin(), selection.files.end(),
                   [&](const RemoteFile& file) { return file.path == selection.gguf; }))
    selection.gguf.clear();
  if (selection.files.empty()) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: none of its {} files is chosen; look at --include and --exclude",
                            model.repo(), listing.files.size()));
  }
  return selection;
}

bool is_weight_file(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".gguf");
}

}  // namespace qwench::hub
