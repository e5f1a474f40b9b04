#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace qwench::hub {

/// The end of one exchange: that of the last redirect that was followed.
struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< empty where a sink took it
  std::string broken;  ///< why the exchange did not come to its end, in words; it may go well another time
  bool unreachable = false;  ///< broken before there was a connection

  std::string header(const std::string& name) const;  ///< "" where absent
  /// What a later try may change: broken, 408, 429 and 5xx.
  bool is_transient() const;
  /// Seconds of Retry-After, from a number or a date.
  std::optional<double> retry_after() const;
};

/// Takes the body of a 200 or 206. What it throws ends the exchange and comes out of HttpClient::get.
class BodySink {
 public:
  virtual ~BodySink() = default;
  virtual void begin(const Response& head) = 0;  ///< status and headers are there
  virtual void write(std::string_view bytes) = 0;
};

/// An exchange was given up because the caller's stop_token asked for it.
struct Stopped {};

/// Scheme, host and port of an address, as in "https://huggingface.co:443"; empty for what is no http
/// address.
std::string origin_of(const std::string& url);

/// Bytes other than letters, digits and "-._~" as %XX; '/' stays where `keep_slashes`.
std::string percent_encoded(std::string_view text, bool keep_slashes);

/// Talks HTTP by libcurl, one exchange at a time; connections are kept for the next. Certificates are
/// checked, only http and https are spoken, at most ten redirects are followed and none from https to http.
/// The token is sent to the origin of `token_url` alone, whatever redirects say, and over plain http only to
/// this machine.
class HttpClient {
 public:
  struct Options {
    std::string token;      ///< empty: none
    std::string token_url;  ///< any address at the origin that may see it
    int stall_seconds = 30;
    std::stop_token stop;
  };

  explicit HttpClient(Options options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Headers alone. Redirects to another origin are not followed: what the first origin says of the file
  /// counts.
  Response head(const std::string& url);
  /// Throws Error (malformed) for a body of more than `limit` bytes.
  Response get(const std::string& url, size_t limit);
  /// From byte `offset` on, into `sink`.
  Response get(const std::string& url, uint64_t offset, BodySink& sink);

 private:
  struct Exchange;
  Response run(const std::string& url, Exchange& exchange);
  Response run_one(const std::string& url, Exchange& exchange);
  bool may_see_token(const std::string& origin) const;

  Options options_;
  std::string token_origin_;
  void* curl_;  // CURL
};

}  // namespace qwench::hub
