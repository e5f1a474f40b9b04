#include "backend/cpu/cpu_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "qwench/error.h"

namespace qwench {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Of address space: only what is written to becomes resident. At the end of a chunk a part of a huge page is
// lost.
constexpr uint64_t kChunk = uint64_t{128} << 20;

}  // namespace

CpuMemory::CpuMemory(uint64_t bytes, const std::string& purpose, Pages pages) : size_(bytes) {
  if (bytes == 0) return;
  void* address =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    size_ = 0;
    throw Error(ErrorKind::out_of_memory,
                fmt::format("{} MB for {} cannot be reserved: {}", (bytes + 999'999) / 1'000'000, purpose,
                            std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(address);
  // Wishes: a refusal changes nothing.
  if (pages == Pages::small) ::madvise(data_, size_, MADV_NOHUGEPAGE);
  if (pages == Pages::large && size_ >= kHugePage) ::madvise(data_, size_, MADV_HUGEPAGE);
}

CpuMemory::CpuMemory(CpuMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

CpuMemory& CpuMemory::operator=(CpuMemory&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

CpuMemory::~CpuMemory() { release(); }

void CpuMemory::release() noexcept {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::byte* CpuArena::take(uint64_t bytes, const std::string& purpose) {
  if (chunks_.empty() || bytes > chunks_.back().size() - used_) {
    chunks_.emplace_back(std::max(bytes, kChunk - kHugePage) + kHugePage, purpose, pages_);
    const auto address = reinterpret_cast<uintptr_t>(chunks_.back().data());
    used_ = (kHugePage - address % kHugePage) % kHugePage;
  }
  std::byte* const piece = chunks_.back().data() + used_;
  used_ = std::min<uint64_t>((used_ + bytes + 63) / 64 * 64, chunks_.back().size());
  return piece;
}

uint64_t checked_product(uint64_t a, uint64_t b, const std::string& purpose) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > uint64_t{1} << 62) {
    throw Error(ErrorKind::out_of_memory,
                fmt::format("{} would take {} times {} bytes, more than any memory", purpose, a, b));
  }
  return product;
}

}  // namespace qwench
