#include "server/page_files.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

namespace qwench::server {
namespace {

// Nothing from elsewhere, no inline scripts or styles; pictures may be data, as the page saves none. The
// hosts of links in an answer are not even looked up.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string entity_tag(std::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  std::string tag = "\"";
  for (size_t i = 0; i < 8; ++i) tag += fmt::format("{:02x}", digest[i]);
  return tag + "\"";
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  const auto files = page_files();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

HttpResponse page_response(const PageFile& file, const HttpRequest& request) {
  const std::string tag = entity_tag(file.content);
  HttpResponse response{200,
                        {{"Content-Type", std::string(file.type)},
                         {"ETag", tag},
                         {"Cache-Control", "no-cache"},
                         {"Content-Security-Policy", std::string(kPolicy)},
                         {"X-Content-Type-Options", "nosniff"},
                         {"Referrer-Policy", "no-referrer"},
                         {"X-DNS-Prefetch-Control", "off"},
                         {"Cross-Origin-Opener-Policy", "same-origin"}},
                        std::string(file.content)};
  const std::string* known = find_header(request.headers, "if-none-match");
  if (known != nullptr && *known == tag) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

}  // namespace qwench::server
