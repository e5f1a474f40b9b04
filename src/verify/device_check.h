#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "verify/reference_check.h"
#include "verify/self_check.h"

namespace qwench {

/// A device beside the CPU, on one prompt.
struct DeviceReport {
  std::string device;              ///< "Vulkan (llvmpipe, software)"
  std::string cpu_weights;         ///< what the CPU's weights were kept as: "f16"
  std::vector<ReferenceRow> rows;  ///< in the order of computation: states of each layer, logits
  int greedy_tokens = 0;           ///< decoded one by one on both
  int greedy_equal = 0;            ///< before the first other one
  double margin = 0;               ///< of the CPU's choice where they part
  bool greedy_ok = true;  ///< all equal, or parted where the two best logits are as near as the tolerance
  SelfCheckReport ways;   ///< of the device: the same bits by every way of computing them

  bool ok() const;
  std::string verdict() const;  ///< one sentence
};

/// Runs random ids (SelfCheckOptions) on the device and on the CPU, which keeps its weights so that their
/// values are those of the device: as f16 where they are plain, as f32 where shaders read the stored blocks.
/// Logits may differ by 5e-3. Throws Error.
DeviceReport check_device(const std::shared_ptr<const Checkpoint>& checkpoint,
                          const SelfCheckOptions& options);

}  // namespace qwench
