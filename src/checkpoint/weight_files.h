#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace qwench {

/// Which files hold a model's weights.
struct WeightFiles {
  bool gguf = false;                              ///< one GGUF file (of a split any one), or safetensors
  std::vector<std::filesystem::path> files;       ///< of a split GGUF the one that was found
  std::map<std::string, std::string> weight_map;  ///< see SafetensorsFolder
  std::filesystem::path folder;                   ///< where config.json, tokenizer.json and the like would be
  bool has_config = false;                        ///< a config.json belongs to the safetensors files
};

/// `path` is a Hugging Face folder, a folder with one GGUF model, a .gguf file (of any name: its first bytes
/// tell) or a .safetensors file. Throws Error (not_found, unsupported, malformed, io) that says what is there
/// instead.
WeightFiles find_weight_files(const std::filesystem::path& path);

}  // namespace qwench
