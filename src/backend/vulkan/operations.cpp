#include "backend/vulkan/operations.h"

#include <bit>

namespace qwench {
namespace {

uint64_t id_of(const VulkanMatrix* matrix) { return matrix == nullptr ? 0 : matrix->buffer().id(); }
uint64_t id_of(const VulkanWeight* weight) { return weight == nullptr ? 0 : weight->buffer().id(); }

uint64_t packed(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

}  // namespace

void Operation::add_to(std::vector<uint64_t>& key) const {
  const auto flags = static_cast<uint32_t>(interleaved) | static_cast<uint32_t>(goes_on) << 1;
  key.insert(key.end(),
             {packed(static_cast<uint32_t>(kind), flags),
              packed(static_cast<uint32_t>(rows), static_cast<uint32_t>(number)),
              packed(static_cast<uint32_t>(layer), std::bit_cast<uint32_t>(eps)), id_of(x), id_of(y),
              id_of(out), id_of(weight), id_of(bias), cache == nullptr ? 0 : cache->keys(layer).id()});
  if (kind == OperationKind::top_k) key.push_back(static_cast<uint64_t>(most));
  if (kind == OperationKind::attention) {
    key.push_back(packed(static_cast<uint32_t>(attention.pieces), static_cast<uint32_t>(attention.queries)));
    key.push_back(static_cast<uint64_t>(attention.parts));
  }
}

}  // namespace qwench
