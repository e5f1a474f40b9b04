#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/safetensors_folder.h"
#include "qwench/error.h"

/// Any bytes as the model.safetensors.index.json of a folder with two shards: the files it leads to lie in
/// that folder, or it is an Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fs = std::filesystem;
  constexpr size_t kLimit = 1 << 16;
  if (size > kLimit) return 0;
  static const fs::path folder = [] {
    std::string name = (fs::temp_directory_path() / "qwench-index-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    for (const char* shard : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
      std::ofstream(fs::path(name) / shard) << "x";
    return fs::path(name);
  }();
  std::ofstream(folder / "model.safetensors.index.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    for (const fs::path& file : qwench::find_safetensors(folder).files) {
      if (file.parent_path() != folder || fs::is_symlink(file)) std::abort();
    }
  } catch (const qwench::Error&) {
  }
  return 0;
}
