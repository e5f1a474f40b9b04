#include "hub/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "qwench/error.h"

namespace qwench::hub {
namespace {

void check(int result) {
  if (result != 1) throw Error(ErrorKind::io, "libcrypto could not compute a checksum");
}

}  // namespace

void Digest::Free::operator()(evp_md_ctx_st* context) const noexcept { EVP_MD_CTX_free(context); }

Digest::Digest(bool is_sha256) : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr ? 1 : 0);
  check(EVP_DigestInit_ex(context_.get(), is_sha256 ? EVP_sha256() : EVP_sha1(), nullptr));
}

Digest Digest::sha256() { return Digest(true); }

Digest Digest::git_sha1(uint64_t size) {
  Digest digest(false);
  digest.update(fmt::format("blob {}", size));
  digest.update(std::string_view("\0", 1));
  return digest;
}

void Digest::update(std::string_view bytes) {
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_.get(), value.data(), &size));
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", value[i]);
  return text;
}

}  // namespace qwench::hub
