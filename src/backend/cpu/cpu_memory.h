#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace qwench {

/// How memory is taken from the system.
enum class Pages {
  large,  // fewer misses of the TLB
  small,  // sparse use stays sparse
};

/// Zeroed memory from the system, resident only where it was written to. Move-only.
class CpuMemory {
 public:
  CpuMemory() = default;
  /// Throws Error (out_of_memory) that says what the memory is for. `bytes` may be 0.
  CpuMemory(uint64_t bytes, const std::string& purpose, Pages pages = Pages::large);
  CpuMemory(CpuMemory&& other) noexcept;
  CpuMemory& operator=(CpuMemory&& other) noexcept;
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;
  ~CpuMemory();

  std::byte* data() const { return data_; }  ///< page-aligned; null when empty
  float* floats() const { return reinterpret_cast<float*>(data_); }
  size_t size() const { return size_; }

 private:
  void release() noexcept;

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Memory that is taken piece by piece and given back as a whole. In huge pages, as far as the system has
/// them, for many matrices of a few MB, which would otherwise lie mostly in small pages, each of which costs
/// a fault and a TLB entry.
class CpuArena {
 public:
  explicit CpuArena(Pages pages) : pages_(pages) {}

  /// Zeroed bytes, aligned to 64. Throws Error (out_of_memory) that says what the memory is for.
  std::byte* take(uint64_t bytes, const std::string& purpose);

 private:
  Pages pages_;
  std::vector<CpuMemory> chunks_;
  uint64_t used_ = 0;  // of the last chunk
};

/// a * b; throws Error (out_of_memory) that says what the memory is for where the product exceeds 2^62.
uint64_t checked_product(uint64_t a, uint64_t b, const std::string& purpose);

}  // namespace qwench
