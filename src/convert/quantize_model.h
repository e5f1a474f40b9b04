#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "qwench/dtype.h"

namespace qwench {

struct QuantizeOptions {
  DType type = DType::q8_0;  ///< plain, or one that can_quantize; which tensor gets what: kept_type
  int threads = 0;           ///< 0: available_cores()
  bool overwrite = false;    ///< a file that is there is replaced
  /// Called between pieces, with the share that is done; false stops, and leaves nothing.
  std::function<bool(double share)> progress;
};

struct QuantizeReport {
  struct Part {
    DType from;
    DType to;
    int tensors;
    uint64_t bytes_from;
    uint64_t bytes_to;
  };
  std::vector<Part> parts;  ///< tensors by their two types, most bytes first
  uint64_t bytes_from = 0;  ///< of all tensors
  uint64_t bytes = 0;       ///< of the file
  bool stopped = false;
};

/// Writes `checkpoint` as one GGUF file. From a GGUF all metadata goes along; from a Hugging Face folder it
/// is made of its config, tokenizer and templates. Tensors go through memory some rows at a time. Throws
/// Error: invalid_argument where `out` exists or is the source, unsupported for what the format cannot say,
/// numeric for a number that the type cannot hold, io.
QuantizeReport quantize_model(const Checkpoint& checkpoint, const std::filesystem::path& out,
                              const QuantizeOptions& options);

}  // namespace qwench
