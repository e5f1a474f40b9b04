#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "qwench/dtype.h"
#include "verify/divergence.h"

namespace qwench {

struct SelfCheckOptions {
  std::optional<DType> dtype;  ///< as SubjectOptions
  bool packed_bf16 = false;    ///< the same
  DType kv_dtype = DType::f32;
  int threads = 0;
  std::string device = "cpu";  ///< as EngineOptions, like the two below
  std::optional<int> gpu_layers;
  uint64_t device_memory = 0;
  uint64_t seed = 0;                                      ///< of the random ids that are run
  int tokens = 96;                                        ///< how many; cut to the model's limit, at least 2
  std::function<void(const std::string& what)> progress;  ///< called before each check
};

/// One way to compute the same logits.
struct SelfCheckLine {
  std::string isa;       ///< "avx2", or "vulkan" for a device
  std::string what;      ///< "token by token"
  int rows = 0;          ///< rows of logits compared, at least 1
  double max_abs = 0;    ///< the largest difference
  double tolerance = 0;  ///< 0: promised to be equal bit for bit
  bool ok = false;
};

/// Other types of weights or cache cells, beside f32 weights and f32 cells.
struct PrecisionLine {
  std::string what;                               ///< "weights as stored (q4_1)"
  std::optional<Divergence::Summary> divergence;  ///< absent where it was not run
  std::string note;                               ///< why it was not
  bool ok = true;
};

struct SelfCheckReport {
  int tokens = 0;
  std::vector<SelfCheckLine> lines;
  std::vector<PrecisionLine> precision;

  bool ok() const;
  std::string verdict() const;  ///< one sentence
};

/// What the engine promises, checked on this model without a reference: the logits of one sequence, computed
/// whole, in chunks, token by token with and without the cache, beside other sequences, with its cache blocks
/// in another order, by other numbers of threads, must be equal bit for bit on every instruction set that
/// this CPU has; between instruction sets they differ by rounding. Changes the process's instruction set
/// while it runs (kernels/isa.h) and sets it back. On a device, its ways are beside each other alone. Throws
/// Error.
SelfCheckReport check_self(const std::shared_ptr<const Checkpoint>& checkpoint,
                           const SelfCheckOptions& options = {});

}  // namespace qwench
