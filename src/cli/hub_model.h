#pragma once

#include <filesystem>
#include <string>

#include "hub/pull.h"

namespace qwench::cli {

/// Where the model is that `named` means: a path, or a name such as Qwen/Qwen3-0.6B of a model in the cache.
/// On a terminal, one that is not there is pulled if the user says so. Throws Error (not_found) that says
/// what to type.
std::filesystem::path find_model(const std::filesystem::path& named);

/// What `qwench pull` does: says on stderr what will be fetched and whether it fits, and shows the progress.
/// Ctrl-C throws hub::Stopped.
hub::PullResult pull_model(const hub::ModelName& model, hub::Source source, const hub::Filter& filter,
                           bool quiet);

}  // namespace qwench::cli
