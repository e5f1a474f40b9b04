#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/json.h"
#include "golden_model.h"
#include "verify/subject.h"

namespace qwench::test {

/// A folder that goes away with the test.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "qwench-verify-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder can be made");
    path_ = pattern;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A copy of a golden's reference as reference.json and reference.safetensors, with one value of one tensor
/// moved, or its JSON changed.
inline std::filesystem::path changed_reference(const ScratchFolder& scratch, const GoldenModel& golden,
                                               const std::string& tensor, size_t element, float by,
                                               const std::function<void(Json&)>& edit = {}) {
  const std::filesystem::path tensors = scratch.path() / "reference.safetensors";
  std::filesystem::copy_file(golden.folder() / "golden.safetensors", tensors,
                             std::filesystem::copy_options::overwrite_existing);
  if (!tensor.empty()) {
    const MappedFile file = MappedFile::open(golden.folder() / "golden.safetensors");
    for (const SafetensorsEntry& entry : parse_safetensors(file.bytes(), "golden.safetensors")) {
      if (entry.name != tensor) continue;
      float value = 0;
      std::memcpy(&value, entry.bytes.data() + element * sizeof(float), sizeof(float));
      value += by;
      std::fstream out(tensors, std::ios::in | std::ios::out | std::ios::binary);
      out.seekp(static_cast<std::streamoff>(entry.bytes.data() - file.bytes().data()) +
                static_cast<std::streamoff>(element * sizeof(float)));
      out.write(reinterpret_cast<const char*>(&value), sizeof(float));
    }
  }
  Json json = golden.json();
  if (edit) edit(json);
  std::ofstream(scratch.path() / "reference.json") << json.dump();
  return scratch.path();
}

inline std::unique_ptr<Subject> subject_of(const std::string& golden, int positions, int sequences = 1,
                                           std::optional<DType> dtype = {}) {
  SubjectOptions options;
  options.positions = positions;
  options.sequences = sequences;
  options.max_rows = positions;
  options.threads = 2;
  options.dtype = dtype;
  return std::make_unique<Subject>(Checkpoint::open(GoldenModel(golden).folder()), options);
}

}  // namespace qwench::test
