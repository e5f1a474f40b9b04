#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hub/environment.h"
#include "hub/http.h"
#include "hub/model_name.h"
#include "hub/retry.h"

namespace qwench::hub {

/// A file that a hub lists.
struct RemoteFile {
  std::string path;  ///< relative to the repository; checked by is_safe_path
  std::optional<uint64_t> size;
  std::string sha256;  ///< 64 lower-case digits, or empty

  bool operator==(const RemoteFile&) const = default;
};

struct Listing {
  std::string commit;  ///< the folder of the snapshot; checked by is_safe_word
  std::vector<RemoteFile> files;
};

/// One file's content.
struct Blob {
  std::string etag;  ///< its name in the cache's blobs; checked by is_safe_word
  uint64_t size = 0;
  std::string sha256;    ///< what its checksum must be, where known
  std::string git_sha1;  ///< the same
};

/// One model at a hub. Requests that fail for now are tried again. Throws Error: not_found for what is not
/// there, invalid_argument for what needs a login, io for a server that fails, malformed for an answer that
/// breaks the protocol; Stopped.
class Remote {
 public:
  virtual ~Remote() = default;
  virtual Listing list(HttpClient& client, Retry retry) const = 0;
  virtual Blob identify(HttpClient& client, Retry retry, const std::string& commit,
                        const RemoteFile& file) const = 0;
  virtual std::string file_url(const std::string& commit, const std::string& path) const = 0;
  virtual std::string default_revision() const = 0;
  virtual const std::string& endpoint() const = 0;
  /// The error for an answer that is none of 200 and 206. `what` is a file, or empty for the model as a
  /// whole.
  [[noreturn]] virtual void refuse(const Response& response, const std::string& what) const = 0;
};

/// The Hugging Face hub or a server that speaks like it.
std::unique_ptr<Remote> hugging_face(const Environment& environment, const ModelName& model);
/// https://modelscope.cn. It names no commit of a repository as a whole: the snapshot is named by a checksum
/// of the list of files, 40 digits like a commit.
std::unique_ptr<Remote> modelscope(const Environment& environment, const ModelName& model);

/// The JSON answers, parsed. Throw Error (malformed) that begins with `what`.
Listing parse_hugging_face_listing(const std::string& body, const std::string& what);
Listing parse_modelscope_listing(const std::string& body, const std::string& what);

/// A file's content from the headers of a HEAD request, with the listing's word for what they leave open.
Blob blob_from_headers(const Response& response, const RemoteFile& file, const std::string& what);

}  // namespace qwench::hub
