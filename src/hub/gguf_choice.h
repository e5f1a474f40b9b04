#pragma once

#include <string>
#include <vector>

namespace qwench::hub {

/// A GGUF model among the files of a repository: one file, or the parts NAME-00001-of-00003.gguf of a split
/// one.
struct GgufChoice {
  std::string stem;                ///< the path without part number and extension
  std::vector<std::string> parts;  ///< paths, in the order of the split; maybe not all of them
  size_t part_count = 1;           ///< how many there should be

  /// What follows the last '-' or '.' that ends a model's name: "Q4_K_M", "f16"; the stem where there is
  /// none.
  std::string label() const;
};

/// Those among `paths`, sorted by stem. Projectors of image models (mmproj*) are none.
std::vector<GgufChoice> gguf_choices(const std::vector<std::string>& paths);

/// The one that `choice` means: a label in any case ("q4_k_m"), or a path of one of its parts. With an empty
/// choice the only one there is. Throws Error (invalid_argument) that lists what can be typed; `repo` is for
/// this.
const GgufChoice& choose_gguf(const std::vector<GgufChoice>& choices, const std::string& choice,
                              const std::string& repo);

}  // namespace qwench::hub
