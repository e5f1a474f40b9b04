#include "hub/checksums.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>

#include "checkpoint/printable.h"
#include "core/ascii.h"
#include "core/mapped_file.h"
#include "hub/digest.h"
#include "hub/model_name.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSums = size_t{4} << 20;
constexpr size_t kSha256Digits = 64;
constexpr size_t kSha1Digits = 40;
constexpr size_t kPart = size_t{1} << 20;  // bytes read at a time

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A line of sha256sum: 64 digits, a space, a space or an asterisk, the name.
Checksum parse_line(const fs::path& sums, int number, std::string_view line) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::malformed, fmt::format("{}: line {} {}", sums.string(), number, what));
  };
  const std::string digits = ascii_lower(line.substr(0, std::min(line.size(), kSha256Digits)));
  if (line.size() < kSha256Digits + 3 || !is_hexadecimal(digits) || line[kSha256Digits] != ' ' ||
      (line[kSha256Digits + 1] != ' ' && line[kSha256Digits + 1] != '*'))
    fail("is no line of sha256sum: 64 hexadecimal digits, two spaces, a name");
  std::string_view file = line.substr(kSha256Digits + 2);
  if (file.starts_with("./")) file.remove_prefix(2);
  if (!is_safe_path(file)) fail(fmt::format("names {}, which is outside of the folder", printable(file)));
  Checksum checksum{sums.parent_path() / file, 0, digits, sums.filename().string()};
  std::error_code error;
  checksum.bytes = fs::file_size(checksum.file, error);
  if (error) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: names {}, which is not there", sums.string(), printable(file)));
  }
  return checksum;
}

std::vector<Checksum> from_sums(const fs::path& folder) {
  std::vector<Checksum> checksums;
  const fs::path sums = folder / "SHA256SUMS";
  std::error_code error;
  if (!fs::is_regular_file(sums, error)) return checksums;
  const std::string text = read_text_file(sums, kMaxSums);
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) checksums.push_back(parse_line(sums, number, line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return checksums;
}

// In the cache an entry of a snapshot is a link to ../../blobs/CHECKSUM.
bool from_blob(const fs::path& entry, std::vector<Checksum>& checksums) {
  std::error_code error;
  if (!fs::is_symlink(entry, error)) return false;
  const fs::path blob = fs::canonical(entry, error);
  if (error || blob.parent_path().filename() != "blobs") return false;
  const std::string name = blob.filename().string();
  if ((name.size() != kSha256Digits && name.size() != kSha1Digits) || !is_hexadecimal(name)) return false;
  const uint64_t bytes = fs::file_size(blob, error);
  if (error) return false;
  checksums.push_back({entry, bytes, name, "the hub"});
  return true;
}

std::string digest_of(const Checksum& checksum, const std::function<void(size_t)>& advance,
                      const std::stop_token& stop) {
  Digest digest =
      checksum.expected.size() == kSha256Digits ? Digest::sha256() : Digest::git_sha1(checksum.bytes);
  std::ifstream stream(checksum.file, std::ios::binary);
  std::string part(kPart, '\0');
  while (stream && !stop.stop_requested()) {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    const auto count = static_cast<size_t>(stream.gcount());
    digest.update(std::string_view(part).substr(0, count));
    advance(count);
  }
  if (!stop.stop_requested() && !stream.eof())
    throw Error(ErrorKind::io, fmt::format("{}: cannot be read", checksum.file.string()));
  return digest.finish();
}

}  // namespace

std::vector<Checksum> known_checksums(const fs::path& path) {
  std::error_code error;
  std::vector<Checksum> checksums;
  if (!fs::is_directory(path, error)) {
    if (from_blob(path, checksums)) return checksums;
    for (Checksum& checksum : from_sums(path.parent_path())) {
      if (checksum.file.filename() == path.filename()) checksums.push_back(std::move(checksum));
    }
    return checksums;
  }
  checksums = from_sums(path);
  std::set<fs::path> entries;
  for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    entries.insert(entry->path());
  for (const fs::path& entry : entries) from_blob(entry, checksums);
  return checksums;
}

std::vector<std::string> wrong_checksums(const std::vector<Checksum>& checksums, ThreadPool& pool,
                                         const std::function<void(double)>& progress,
                                         const std::stop_token& stop) {
  uint64_t total = 1;
  for (const Checksum& checksum : checksums) total += checksum.bytes;
  std::vector<std::string> sentences(checksums.size());
  std::atomic<uint64_t> done{0};
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  pool.run([&](int worker, int) {
    const auto advance = [&](size_t bytes) {
      const uint64_t now = done += bytes;
      if (worker == 0 && progress) progress(static_cast<double>(now) / static_cast<double>(total));
    };
    try {
      for (size_t i = next++; i < checksums.size() && !stop.stop_requested(); i = next++) {
        const std::string found = digest_of(checksums[i], advance, stop);
        if (found != checksums[i].expected && !stop.stop_requested()) {
          sentences[i] =
              fmt::format("{}: its checksum is {}, but {} says {}; fetch it again",
                          checksums[i].file.string(), found, checksums[i].source, checksums[i].expected);
        }
      }
    } catch (...) {
      const std::lock_guard guard(mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
  std::erase(sentences, "");
  return sentences;
}

}  // namespace qwench::hub
