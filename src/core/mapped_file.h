#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace qwench {

/// A whole file mapped read-only. Move-only; the bytes live as long as the object. Reading what another
/// process has cut off raises SIGBUS, as with every mapping: see explain_lost_files.
class MappedFile {
 public:
  /// Throws Error: not_found when the file is not there or no regular file, io when the system refuses it.
  /// An empty file gives an empty span.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile() = default;
  void close() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// For programs: from now on SIGBUS ends the process with one sentence on stderr and exit code 1.
void explain_lost_files() noexcept;

/// Asks the system to read these mapped bytes ahead of their use.
void prefetch(std::span<const std::byte> bytes) noexcept;

/// Gives back the memory of the whole pages inside these mapped bytes; they are read again when they are
/// used.
void release(std::span<const std::byte> bytes) noexcept;

/// Whether something has this name. Throws Error (io) where the system does not say: a folder that may not be
/// entered, a name that is too long.
bool is_there(const std::filesystem::path& path);

/// The whole text of a small file; refuses more than `limit` bytes. Throws Error like MappedFile::open.
std::string read_text_file(const std::filesystem::path& path, size_t limit = size_t{64} << 20);

}  // namespace qwench
