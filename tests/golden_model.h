#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/json.h"
#include "core/mapped_file.h"

namespace qwench::test {

/// A tiny checkpoint of tests/data/models with what the reference implementation makes of it.
class GoldenModel {
 public:
  explicit GoldenModel(const std::string& name)
      : folder_(std::filesystem::path(QWENCH_TEST_DATA) / "models" / name),
        json_(parse_json(read_text_file(folder_ / "golden.json"), "golden.json")),
        file_(MappedFile::open(folder_ / "golden.safetensors")) {
    for (const SafetensorsEntry& entry : parse_safetensors(file_.bytes(), "golden.safetensors")) {
      std::vector<float> values(entry.bytes.size() / sizeof(float));
      std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
      tensors_.emplace(entry.name, std::move(values));
    }
  }

  const std::filesystem::path& folder() const { return folder_; }
  const Json& json() const { return json_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const std::vector<float>& tensor(const std::string& name) const { return tensors_.at(name); }

 private:
  std::filesystem::path folder_;
  Json json_;
  MappedFile file_;
  std::map<std::string, std::vector<float>> tensors_;
};

inline const std::vector<std::string>& dense_golden_models() {
  static const std::vector<std::string> names{
      "qwen3-tiny-f32", "qwen3-tiny-bf16-tied",   "qwen3-tiny-sharded-bf16", "qwen3-tiny-tied-with-head",
      "qwen2-tiny-f16", "qwen2-tiny-untied-bf16", "qwen2-tiny-window",       "qwen2-tiny-yarn",
      "llama-tiny",     "llama-tiny-rope3",
  };
  return names;
}

}  // namespace qwench::test
