#include "checkpoint/weight_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/safetensors_folder.h"
#include "core/mapped_file.h"
#include "qwench/error.h"

namespace qwench {
namespace {

namespace fs = std::filesystem;

/// The one GGUF model in a folder; empty when there is none. The parts of a split count as one.
fs::path only_gguf(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() || !name.ends_with(".gguf") || name.starts_with("mmproj")) continue;
    const size_t part = name.find("-of-");
    const bool later_part = part != std::string::npos && part >= 6 && name.substr(part - 6, 6) != "-00001";
    if (!later_part) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.size() > 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: {} GGUF models are in this folder, among them {} and {}; name one of them",
                            folder.string(), files.size(), files[0].filename().string(),
                            files[1].filename().string()));
  }
  return files.empty() ? fs::path() : files.front();
}

bool has_safetensors(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) {
                       return entry.path().filename().string().find(".safetensors") != std::string::npos;
                     });
}

WeightFiles in_folder(const fs::path& folder) {
  WeightFiles found;
  found.folder = folder;
  found.has_config = is_there(folder / "config.json");
  if (!found.has_config || !has_safetensors(folder)) {
    if (const fs::path gguf = only_gguf(folder); !gguf.empty()) {
      found.gguf = true;
      found.has_config = false;
      found.files = {gguf};
      return found;
    }
  }
  SafetensorsFolder weights = find_safetensors(folder);  // its errors say what is there in place of weights
  if (!found.has_config) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: not there; the folder has weights, but no config to read them by",
                            (folder / "config.json").string()));
  }
  found.files = std::move(weights.files);
  found.weight_map = std::move(weights.weight_map);
  return found;
}

WeightFiles lone_file(const fs::path& path) {
  WeightFiles found;
  found.files = {path};
  found.folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (path.extension() == ".safetensors") return found;
  // Blobs of the Hugging Face cache have no extension: GGUF files tell by their first bytes.
  if (path.extension() != ".gguf" && !MappedFile::open(path).text().starts_with("GGUF")) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: neither a folder nor a .gguf or .safetensors file", path.string()));
  }
  found.gguf = true;
  return found;
}

}  // namespace

WeightFiles find_weight_files(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: no such file or folder; expected a Hugging Face folder or a .gguf file",
                            path.string()));
  }
  try {
    return fs::is_directory(status) ? in_folder(path) : lone_file(path);
  } catch (const fs::filesystem_error& failure) {
    throw Error(ErrorKind::io, fmt::format("{}: {}", path.string(), failure.code().message()));
  }
}

}  // namespace qwench
