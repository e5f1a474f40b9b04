#pragma once

#include <string>
#include <vector>

#include "hub/remote.h"

namespace qwench::hub {

/// Patterns as huggingface_hub has them: `*` matches slashes too, and one that ends with a slash means all
/// below it.
struct Filter {
  std::vector<std::string> include;  ///< empty: what a model needs
  std::vector<std::string> exclude;
};

struct Selection {
  std::vector<RemoteFile> files;
  std::string gguf;  ///< the (first part of the) chosen GGUF model; empty where the folder is the model
};

/// Which files of `listing` to fetch. Without --include: for a folder of safetensors the weights that would
/// be loaded and the files of configuration, tokenizer and chat template beside them; else one GGUF model
/// with all of its parts. Throws Error: not_found, invalid_argument, saying what can be chosen.
Selection select_files(const Listing& listing, const ModelName& model, const Filter& filter);

/// Whether a file holds weights.
bool is_weight_file(const std::string& path);

}  // namespace qwench::hub
