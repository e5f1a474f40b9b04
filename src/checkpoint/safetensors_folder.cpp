#include "checkpoint/safetensors_folder.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <set>

#include "checkpoint/printable.h"
#include "core/mapped_file.h"
#include "qwench/error.h"

namespace qwench {
namespace {

namespace fs = std::filesystem;
constexpr const char* kIndexName = "model.safetensors.index.json";

/// A bare file name that ends in .safetensors: nothing that leads out of the folder.
bool is_plain_name(std::string_view text) {
  return text.ends_with(".safetensors") &&
         text.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

std::map<std::string, std::string> read_index(const fs::path& path) {
  const std::string what = path.string();
  const auto fail = [&](const std::string& message) {
    throw Error(ErrorKind::malformed, fmt::format("{}: {}", what, message));
  };
  // The DOM parser, as the general JSON tree looks keys up one by one and an index may have a hundred
  // thousand.
  const simdjson::padded_string text(read_text_file(path));
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (const auto error = parser.parse(text).get(root)) {
    fail(fmt::format("not valid JSON: {}", simdjson::error_message(error)));
  }
  simdjson::dom::object object;
  if (root.get(object)) fail("expected a JSON object");
  simdjson::dom::element map;
  if (object["weight_map"].get(map)) fail("`weight_map` is missing");
  simdjson::dom::object entries;
  if (map.get(entries)) fail("`weight_map` is not an object");
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : entries) {
    std::string_view file;
    if (value.get(file)) fail(fmt::format("`weight_map` gives no file name for {}", printable(key)));
    if (!is_plain_name(file)) {
      fail(fmt::format(
          "`weight_map` places {} in {}; expected the name of a .safetensors file in the same folder",
          printable(key), printable(file)));
    }
    if (!result.emplace(key, file).second) fail(fmt::format("`weight_map` names {} twice", printable(key)));
  }
  if (result.empty()) fail("`weight_map` is empty");
  return result;
}

struct ShardName {
  int number;
  int count;
};

/// Anything-00002-of-00005.safetensors
std::optional<ShardName> shard_name(const std::string& file) {
  constexpr std::string_view kPattern = "-ddddd-of-ddddd.safetensors";
  if (file.size() < kPattern.size()) return std::nullopt;
  const size_t start = file.size() - kPattern.size();
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const char c = file[start + i];
    if (kPattern[i] == 'd' ? (c < '0' || c > '9') : c != kPattern[i]) return std::nullopt;
  }
  return ShardName{std::stoi(file.substr(start + 1, 5)), std::stoi(file.substr(start + 10, 5))};
}

/// Without an index the names still tell when a part was not copied.
void check_shards(const fs::path& folder, const std::vector<fs::path>& files) {
  std::map<int, std::set<int>> numbers_by_count;
  for (const fs::path& file : files) {
    if (const auto shard = shard_name(file.filename().string()))
      numbers_by_count[shard->count].insert(shard->number);
  }
  for (const auto& [count, numbers] : numbers_by_count) {
    for (int i = 1; i <= count; ++i) {
      if (!numbers.contains(i)) {
        throw Error(ErrorKind::not_found,
                    fmt::format("{}: shard {} of {} is not there; download the missing file", folder.string(),
                                i, count));
      }
    }
  }
}

[[noreturn]] void no_weights(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const char* end : {".bin", ".pt", ".pth", ".ckpt", ".pkl"}) {
      if (name.ends_with(end)) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("{}: the weights are Python pickles ({}), which can run code and are not "
                                "read; convert them to "
                                "safetensors with save_pretrained(..., safe_serialization=True), or take a "
                                "safetensors or GGUF "
                                "version of the model",
                                folder.string(), printable(std::string_view(name))));
      }
    }
  }
  throw Error(ErrorKind::not_found,
              fmt::format("{}: no *.safetensors and no *.gguf file is in this folder", folder.string()));
}

}  // namespace

SafetensorsFolder find_safetensors(const fs::path& folder) {
  SafetensorsFolder result;
  const fs::path index = folder / kIndexName;
  if (is_there(index)) {
    result.weight_map = read_index(index);
    std::set<std::string> names;
    for (const auto& [tensor, file] : result.weight_map) names.insert(file);
    for (const std::string& name : names) {
      result.files.push_back(folder / name);
      if (!is_there(result.files.back())) {
        throw Error(ErrorKind::not_found,
                    fmt::format("{}: {} names this file, but it is not there; download it",
                                result.files.back().string(), kIndexName));
      }
    }
    return result;
  }
  if (is_there(folder / "model.safetensors")) {
    result.files.push_back(folder / "model.safetensors");
    return result;
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.ends_with(".safetensors")) result.files.push_back(folder / name);
  }
  if (result.files.empty()) no_weights(folder, names);
  check_shards(folder, result.files);
  return result;
}

}  // namespace qwench
