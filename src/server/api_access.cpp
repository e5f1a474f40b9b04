#include "server/api_access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <fstream>

#include "qwench/error.h"

namespace qwench::server {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

bool is_local(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    std::string_view host = origin.substr(scheme.size());
    for (const std::string_view local : {"localhost", "127.0.0.1", "[::1]"}) {
      if (!host.starts_with(local)) continue;
      const std::string_view rest = host.substr(local.size());
      const bool port =
          rest.size() > 1 && rest.size() <= 6 && rest[0] == ':' &&
          std::all_of(rest.begin() + 1, rest.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (rest.empty() || port) return true;
    }
  }
  return false;
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (key.empty()) refuse("--api-key: the key is empty");
    digests_.push_back(digest(key));
  }
}

ApiKeys::Digest ApiKeys::digest(std::string_view text) {
  Digest result{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data());
  return result;
}

bool ApiKeys::knows(std::string_view key) const {
  // Digests are compared: equal in length, and as good as random, whatever was sent.
  const Digest given = digest(key);
  bool found = false;
  for (const Digest& known : digests_) found |= CRYPTO_memcmp(given.data(), known.data(), known.size()) == 0;
  return found;
}

bool ApiKeys::allow(const Headers& headers) const {
  if (!needed()) return true;
  if (const std::string* key = find_header(headers, "x-api-key"); key != nullptr && knows(*key)) return true;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string* authorization = find_header(headers, "authorization");
  if (authorization == nullptr || authorization->size() < kScheme.size() ||
      !equal_ignoring_case(std::string_view(*authorization).substr(0, kScheme.size()), kScheme))
    return false;
  return knows(std::string_view(*authorization).substr(kScheme.size()));
}

std::vector<std::string> read_key_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse(fmt::format("--api-key-file {}: cannot be read", path));
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (keys.empty()) refuse(fmt::format("--api-key-file {}: holds no key; put one on each line", path));
  return keys;
}

CorsPolicy::CorsPolicy(std::vector<std::string> origins) : origins_(std::move(origins)) {
  for (std::string& origin : origins_) {
    if (origin == "*") {
      any_ = true;
    } else if (origin.find("://") == std::string::npos ||
               origin.find_first_of(" \r\n,") != std::string::npos) {
      refuse(fmt::format("--cors-origin {}: expected an origin such as https://example.org, or *", origin));
    } else if (origin.ends_with('/')) {
      origin.pop_back();
    }
  }
}

bool CorsPolicy::allows(std::string_view origin) const {
  if (origins_.empty()) return is_local(origin);
  return any_ || std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

Headers CorsPolicy::headers(const Headers& request) const {
  const std::string* origin = find_header(request, "origin");
  Headers headers{{"Vary", "Origin"}};
  if (origin == nullptr || !allows(*origin)) return headers;
  headers.emplace_back("Access-Control-Allow-Origin", any_ ? "*" : *origin);
  headers.emplace_back("Access-Control-Expose-Headers", "x-request-id, retry-after");
  return headers;
}

Headers CorsPolicy::preflight_headers(const Headers& request) {
  Headers headers{{"Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS"},
                  {"Access-Control-Max-Age", "86400"}};
  const std::string* wanted = find_header(request, "access-control-request-headers");
  const bool harmless =
      wanted != nullptr && wanted->size() <= 1024 && std::all_of(wanted->begin(), wanted->end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_' || c == ',' || c == ' ';
      });
  headers.emplace_back("Access-Control-Allow-Headers",
                       harmless ? *wanted : "Authorization, Content-Type, X-Api-Key, X-Request-Id");
  return headers;
}

}  // namespace qwench::server
