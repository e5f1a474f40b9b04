#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"

namespace qwench::server {

/// The keys that open the API. The time a comparison takes does not depend on where keys differ.
class ApiKeys {
 public:
  /// With no keys everybody may ask. Throws Error (invalid_argument) for an empty key.
  explicit ApiKeys(const std::vector<std::string>& keys);

  bool needed() const { return !digests_.empty(); }
  /// Looks at "Authorization: Bearer KEY" and, as Anthropic's clients send it, "x-api-key: KEY".
  bool allow(const Headers& headers) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view text);
  bool knows(std::string_view key) const;

  std::vector<Digest> digests_;  // SHA-256
};

/// The keys of a file, one a line; empty lines and those that begin with # are left out. Throws Error
/// (invalid_argument) where there is none.
std::vector<std::string> read_key_file(const std::string& path);

/// Which web pages may call this server from a browser (https://fetch.spec.whatwg.org/#http-cors-protocol).
class CorsPolicy {
 public:
  /// Origins such as "https://example.org", or "*". With none, those of this machine: http or https,
  /// localhost, 127.0.0.1 or [::1], any port.
  explicit CorsPolicy(std::vector<std::string> origins);

  /// The headers that go on every answer to this request.
  Headers headers(const Headers& request) const;
  /// Those of the answer to a preflight besides.
  static Headers preflight_headers(const Headers& request);

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> origins_;
  bool any_ = false;
};

}  // namespace qwench::server
