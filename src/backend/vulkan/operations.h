#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/vulkan/step_data.h"
#include "backend/vulkan/vulkan_tensors.h"

namespace qwench {

enum class OperationKind : uint32_t {
  embed,
  rms_norm,
  linear,
  rope,
  store_kv,
  attention,
  silu_mul,
  add,
  gather_rows,
  argmax,
  top_k,
  read,  // rows of a matrix, for the host
};

/// One operation of Backend, to be recorded. What it works on is not owned.
struct Operation {
  OperationKind kind = OperationKind::embed;
  const VulkanMatrix* x = nullptr;
  const VulkanMatrix* y = nullptr;    // a second input
  const VulkanMatrix* out = nullptr;  // may be x
  const VulkanWeight* weight = nullptr;
  const VulkanWeight* bias = nullptr;
  const VulkanKvCache* cache = nullptr;
  int rows = 0;
  int layer = 0;
  int number = 0;  // rope: head_dim; attention: window; argmax, top_k: columns; read: first row
  int most = 0;    // top_k: k
  float eps = 0;
  bool interleaved = false;
  bool goes_on = false;      // a linear beside the one before it: of the same call of Backend
  AttentionShape attention;  // of attention

  /// All that the recorded commands depend on.
  void add_to(std::vector<uint64_t>& key) const;
};

}  // namespace qwench
