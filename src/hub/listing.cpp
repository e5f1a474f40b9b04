#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/printable.h"
#include "core/json.h"
#include "hub/digest.h"
#include "hub/remote.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

constexpr size_t kMaxFiles = 100'000;
constexpr int kMaxDepth = 32;

[[noreturn]] void malformed(const std::string& what, const std::string& why) {
  throw Error(ErrorKind::malformed, fmt::format("{}: {}", what, why));
}

const Json& field(const Json& object, const char* name) {
  static const Json absent;
  if (!object.is_object()) return absent;
  const auto found = object.find(name);
  return found == object.end() ? absent : *found;
}

std::string text(const Json& object, const char* name) {
  const Json& value = field(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<uint64_t> size(const Json& object, const char* name, const std::string& what) {
  const Json& value = field(object, name);
  if (value.is_null()) return std::nullopt;
  // Beyond 2^62, sums of sizes would not fit.
  if (!value.is_number_unsigned() || value.get<uint64_t>() > (uint64_t{1} << 62))
    malformed(what, fmt::format("{} is {}; expected a file's size in bytes", name, printable(value.dump())));
  return value.get<uint64_t>();
}

bool is_hex(const std::string& digits, size_t length) {
  return digits.size() == length && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string sha256(const Json& object, const char* name) {
  const std::string digits = text(object, name);
  return is_hex(digits, 64) ? digits : "";
}

void check_path(const std::string& path, const std::string& what) {
  if (!is_safe_path(path)) {
    malformed(what, fmt::format(
                        "the server lists a file named {}; expected a relative path that stays in its folder",
                        printable(path)));
  }
}

void check_files(Listing& listing, const std::string& what) {
  std::sort(listing.files.begin(), listing.files.end(),
            [](const RemoteFile& a, const RemoteFile& b) { return a.path < b.path; });
  const auto twice =
      std::adjacent_find(listing.files.begin(), listing.files.end(),
                         [](const RemoteFile& a, const RemoteFile& b) { return a.path == b.path; });
  if (twice != listing.files.end())
    malformed(what, fmt::format("the server lists {} twice", printable(twice->path)));
}

const Json& array(const Json& object, const char* name, const std::string& what) {
  const Json& value = field(object, name);
  if (!value.is_array()) malformed(what, fmt::format("the server's answer has no array {}", name));
  if (value.size() > kMaxFiles)
    malformed(what, fmt::format("the server lists {} files, more than {}", value.size(), kMaxFiles));
  return value;
}

std::string unquoted(std::string etag) {
  if (etag.starts_with("W/")) etag = etag.substr(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

std::optional<uint64_t> number(const std::string& digits) {
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(digits);
}

}  // namespace

Listing parse_hugging_face_listing(const std::string& body, const std::string& what) {
  const Json answer = parse_json(body, what, kMaxDepth);
  Listing listing;
  listing.commit = text(answer, "sha");
  if (!is_safe_word(listing.commit)) {
    malformed(what, fmt::format("the server names the commit {}; expected 40 hexadecimal digits",
                                printable(listing.commit)));
  }
  for (const Json& entry : array(answer, "siblings", what)) {
    RemoteFile file;
    file.path = text(entry, "rfilename");
    check_path(file.path, what);
    file.size = size(entry, "size", what);
    file.sha256 = sha256(field(entry, "lfs"), "sha256");
    listing.files.push_back(std::move(file));
  }
  check_files(listing, what);
  return listing;
}

Listing parse_modelscope_listing(const std::string& body, const std::string& what) {
  const Json answer = parse_json(body, what, kMaxDepth);
  if (!field(answer, "Data").is_object()) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: the server answers {}", what, printable(text(answer, "Message"))));
  }
  Listing listing;
  for (const Json& entry : array(field(answer, "Data"), "Files", what)) {
    if (text(entry, "Type") == "tree") continue;
    RemoteFile file;
    file.path = text(entry, "Path");
    check_path(file.path, what);
    file.size = size(entry, "Size", what);
    file.sha256 = sha256(entry, "Sha256");
    listing.files.push_back(std::move(file));
  }
  check_files(listing, what);
  Digest digest = Digest::sha256();
  for (const RemoteFile& file : listing.files) digest.update(fmt::format("{} {}\n", file.sha256, file.path));
  listing.commit = digest.finish().substr(0, 40);
  return listing;
}

Blob blob_from_headers(const Response& response, const RemoteFile& file, const std::string& what) {
  Blob blob;
  blob.etag =
      unquoted(response.header(response.headers.contains("x-linked-etag") ? "x-linked-etag" : "etag"));
  if (blob.etag.empty()) blob.etag = file.sha256;
  if (!is_safe_word(blob.etag)) {
    malformed(what, fmt::format("the server names its content {} in ETag; expected a checksum",
                                printable(blob.etag)));
  }
  std::optional<uint64_t> size = number(response.header("x-linked-size"));
  // The length of a redirect is that of the redirect itself.
  if (!size && response.status == 200) size = number(response.header("content-length"));
  if (!size) size = file.size;
  if (!size) malformed(what, "the server does not say its size");
  if (file.size && *file.size != *size) {
    malformed(what,
              fmt::format("the server says {} bytes in its list of files, and {} when asked for the file",
                          *file.size, *size));
  }
  blob.size = *size;
  blob.sha256 = file.sha256;
  if (is_hex(blob.etag, 64)) {
    if (!blob.sha256.empty() && blob.sha256 != blob.etag)
      malformed(what, "the server says two different SHA-256 checksums of it");
    blob.sha256 = blob.etag;
  } else if (is_hex(blob.etag, 40)) {
    blob.git_sha1 = blob.etag;
  }
  return blob;
}

}  // namespace qwench::hub
