#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qwench::cli {

/// What `inspect --check` found.
struct CheckResult {
  std::string summary;                ///< one sentence, without a newline at its end
  std::vector<std::string> problems;  ///< all there are with the tensors; empty for sound files
};

/// Loads what `path` names as far as all checks go, without touching the weights themselves: a checkpoint
/// folder or a .gguf as a model (config, every expected tensor, tokenizer and chat template where there are
/// some), a .safetensors as a file, a tokenizer.json or a folder with nothing but a tokenizer as a tokenizer.
/// Throws Error for what is wrong before tensors can be compared.
CheckResult check_path(const std::filesystem::path& path);

}  // namespace qwench::cli
