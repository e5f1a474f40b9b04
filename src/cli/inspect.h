#pragma once

#include <filesystem>
#include <string>

namespace qwench::cli {

/// What `inspect --check` found at a sound path.
struct CheckResult {
  std::string summary;  ///< one paragraph, without a newline at its end
};

/// Loads what `path` names as far as all checks go, without touching the weights themselves: a checkpoint
/// folder or a .gguf as a model (config, every expected tensor, tokenizer and chat template where there are
/// some), a .safetensors as a file, a tokenizer.json or a folder with nothing but a tokenizer as a tokenizer.
/// Throws Error.
CheckResult check_path(const std::filesystem::path& path);

}  // namespace qwench::cli
