#pragma once

#include <filesystem>
#include <vector>

#include "hub/remote.h"
#include "hub/selection.h"

namespace qwench::hub {

/// A model before it is fetched: its small files, and of the large ones the headers, in a folder that
/// Checkpoint::open takes. The weights are holes of their full size. The folder goes with the object.
class Preview {
 public:
  /// `blobs` belong to selection.files. Throws Error where a file cannot be fetched or its header is longer
  /// than kMaxHeader; Stopped.
  Preview(HttpClient& client, const Remote& remote, const std::string& commit, const Selection& selection,
          const std::vector<Blob>& blobs);
  ~Preview();
  Preview(const Preview&) = delete;
  Preview& operator=(const Preview&) = delete;

  static constexpr uint64_t kMaxHeader = uint64_t{64} << 20;

  const std::filesystem::path& model() const { return model_; }

 private:
  std::filesystem::path folder_;
  std::filesystem::path model_;
};

}  // namespace qwench::hub
