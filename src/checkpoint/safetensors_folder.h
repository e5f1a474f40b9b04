#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace qwench {

/// Which safetensors files of a Hugging Face folder make up the model.
struct SafetensorsFolder {
  std::vector<std::filesystem::path> files;  ///< sorted
  std::map<std::string, std::string>
      weight_map;  ///< tensor -> file name, from model.safetensors.index.json; else empty
};

/// By model.safetensors.index.json where there is one, else model.safetensors, else all *.safetensors. Names
/// in an index must be those of files in the folder itself. Throws Error: malformed for a broken index,
/// not_found naming a missing file, or saying what to do with a folder that holds weights in another format.
SafetensorsFolder find_safetensors(const std::filesystem::path& folder);

}  // namespace qwench
