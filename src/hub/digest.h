#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace qwench::hub {

/// A running checksum of a file's bytes.
class Digest {
 public:
  static Digest sha256();
  /// SHA-1 as git names a file's content: over "blob SIZE\0" and then the bytes.
  static Digest git_sha1(uint64_t size);

  void update(std::string_view bytes);
  std::string finish();  ///< lower-case hexadecimal digits; to be called once

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  explicit Digest(bool is_sha256);
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace qwench::hub
