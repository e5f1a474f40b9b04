#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace qwench {

/// What a model's weights take on a device of Vulkan, as it keeps them (backend/vulkan/weight_layout.h).
/// Bytes.
struct DeviceWeights {
  uint64_t outside = 0;          ///< embedding, head, norms, biases: always on the device
  uint64_t table = 0;            ///< of these, an embedding that is not the head too: read by rows
  std::vector<uint64_t> layers;  ///< [layers] matrices, which may be streamed

  /// Read for one token.
  uint64_t per_token() const { return resident(count()) - table; }
  int count() const { return static_cast<int>(layers.size()); }
  /// Of the first `gpu_layers` layers, which stay on the device, and what belongs to no layer.
  uint64_t resident(int gpu_layers) const;
  /// Of the two slots that the other layers are streamed through; 0 where there are none.
  uint64_t slots(int gpu_layers) const;
  /// Of the other layers, in the host's memory.
  uint64_t streamed(int gpu_layers) const;
};

/// The checkpoint must have passed check_tensors; `dtype` is EngineOptions::dtype.
DeviceWeights device_weights(const Checkpoint& checkpoint, std::optional<DType> dtype);

}  // namespace qwench
