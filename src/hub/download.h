#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "hub/remote.h"

namespace qwench::hub {

/// What fetching one blob needs beside the blob itself.
struct DownloadContext {
  const Remote& remote;
  HttpClient& client;
  std::atomic<int64_t>& received;  ///< bytes that lie on disk; goes down when a file is begun anew
  std::stop_token stop;
  Notice notice;
};

/// Fetches `blob` from `url` into `target`: into target.incomplete first, from where that ends, and renamed
/// once length and checksum are right. `path` is the file's name for people. A broken transfer is resumed;
/// one that brings wrong bytes is begun anew once. Throws Error, Stopped; what was received stays for the
/// next time, but not where it was wrong.
void download(const DownloadContext& context, const std::string& url, const Blob& blob,
              const std::string& path, const std::filesystem::path& target);

/// How many bytes of an unfinished download lie beside `target`.
uint64_t unfinished_bytes(const std::filesystem::path& target);

}  // namespace qwench::hub
