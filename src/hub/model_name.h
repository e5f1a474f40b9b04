#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qwench::hub {

/// A model as a hub knows it: ORG/NAME[:CHOICE][@REVISION].
struct ModelName {
  std::string org;     ///< "Qwen"
  std::string name;    ///< "Qwen3-0.6B"
  std::string choice;  ///< which GGUF model of the repository: "Q4_K_M" or a file's path; empty: the only one
  std::string revision;  ///< branch, tag, "refs/pr/1" or commit; empty: the hub's default branch

  std::string repo() const { return org + "/" + name; }
  std::string text() const;  ///< as it would be typed

  bool operator==(const ModelName&) const = default;
};

/// Empty when `text` is no such name. Organization and name have ASCII letters, digits, '_', '-' and '.',
/// begin and end with a letter, a digit or '_', have neither ".." nor "--", and at most 96 characters; choice
/// and revision are relative paths (see is_safe_path). So no part can leave the folder it is put into.
std::optional<ModelName> parse_model_name(std::string_view text);

/// A relative path that stays below the folder it is appended to: parts separated by '/', none of them empty,
/// "." or "..", of at most 255 bytes (1024 in all), valid UTF-8 without control characters and backslashes.
bool is_safe_path(std::string_view path);

/// One such part that is a plain word: ASCII letters, digits, '_', '-' and '.', not beginning with a dot.
bool is_safe_word(std::string_view word);

}  // namespace qwench::hub
