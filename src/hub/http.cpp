#include "hub/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>

#include "checkpoint/printable.h"
#include "core/ascii.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxHeaders = 200;
constexpr long kConnectSeconds = 15;

void start_library() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  return std::string(text);
}

bool is_loopback(const std::string& origin) {
  std::string_view host = std::string_view(origin).substr(origin.find("://") + 3);
  host = host.substr(0, host.rfind(':'));
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

struct FreeHeaders {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeHeaders>;

void add(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  static_cast<void>(list.release());
  list.reset(longer);
}

// Trouble that no later try changes.
bool is_final(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct HttpClient::Exchange {
  bool head_only = false;
  uint64_t offset = 0;
  size_t limit = 0;
  BodySink* sink = nullptr;

  CURL* curl = nullptr;
  std::string origin;
  std::stop_token stop;
  std::chrono::seconds patience{0};
  Clock::time_point last_news;
  curl_off_t received = 0;
  bool stalled = false;
  Response response;
  bool began = false;
  std::exception_ptr failure;

  bool is_success() const { return response.status == 200 || response.status == 206; }

  void take_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // also after a 100 Continue
      response.headers.clear();
      return;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || response.headers.size() >= kMaxHeaders) return;
    response.headers[ascii_lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  }

  void take_status() {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
  }

  void begin() {
    if (began) return;
    began = true;
    take_status();
    if (sink != nullptr && is_success()) sink->begin(response);
  }

  void take_body(std::string_view bytes) {
    begin();
    if (sink != nullptr && is_success()) {
      sink->write(bytes);
    } else if (sink == nullptr) {
      if (response.body.size() + bytes.size() > limit) {
        throw Error(
            ErrorKind::malformed,
            fmt::format("{}: the answer has more than the {} bytes that are read of it", origin, limit));
      }
      response.body += bytes;
    }
  }

  static size_t on_header(char* data, size_t size, size_t count, void* self) {
    return static_cast<Exchange*>(self)->guarded(size * count, [&](Exchange& exchange) {
      exchange.take_header(std::string_view(data, size * count));
    });
  }

  static size_t on_body(char* data, size_t size, size_t count, void* self) {
    return static_cast<Exchange*>(self)->guarded(
        size * count, [&](Exchange& exchange) { exchange.take_body(std::string_view(data, size * count)); });
  }

  // Called several times a second, also while nothing comes.
  static int on_progress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
    auto& exchange = *static_cast<Exchange*>(self);
    const auto now = Clock::now();
    if (received != exchange.received) {
      exchange.received = received;
      exchange.last_news = now;
    }
    exchange.stalled = now - exchange.last_news > exchange.patience;
    return exchange.stalled || exchange.stop.stop_requested() ? 1 : 0;
  }

 private:
  // No exception may pass through libcurl.
  template <typename Action>
  size_t guarded(size_t bytes, Action action) {
    try {
      action(*this);
      return bytes;
    } catch (...) {
      failure = std::current_exception();
      return bytes + 1;
    }
  }
};

std::string Response::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

bool Response::is_transient() const {
  return !broken.empty() || status == 408 || status == 429 || (status >= 500 && status != 501);
}

std::optional<double> Response::retry_after() const {
  const std::string text = header("retry-after");
  if (text.empty()) return std::nullopt;
  uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) return static_cast<double>(seconds);
  if (error == std::errc::result_out_of_range) return 1e9;
  const time_t date = curl_getdate(text.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(0.0, std::difftime(date, std::time(nullptr)));
}

std::string origin_of(const std::string& url) {
  struct Free {
    void operator()(CURLU* address) const noexcept { curl_url_cleanup(address); }
  };
  const std::unique_ptr<CURLU, Free> address(curl_url());
  if (!address || curl_url_set(address.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return "";
  const auto part = [&](CURLUPart which) {
    char* text = nullptr;
    if (curl_url_get(address.get(), which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return std::string();
    std::string result = ascii_lower(text);
    curl_free(text);
    return result;
  };
  const std::string scheme = part(CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return "";
  return fmt::format("{}://{}:{}", scheme, part(CURLUPART_HOST), part(CURLUPART_PORT));
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  std::string result;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos || (keep_slashes && c == '/')) {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<uint8_t>(c));
    }
  }
  return result;
}

HttpClient::HttpClient(Options options) : options_(std::move(options)) {
  start_library();
  token_origin_ = origin_of(options_.token_url);
  curl_ = curl_easy_init();
  if (curl_ == nullptr) throw Error(ErrorKind::io, "libcurl could not be started");
}

HttpClient::~HttpClient() { curl_easy_cleanup(curl_); }

bool HttpClient::may_see_token(const std::string& origin) const {
  return !options_.token.empty() && origin == token_origin_ &&
         (origin.starts_with("https://") || is_loopback(origin));
}

Response HttpClient::head(const std::string& url) {
  Exchange exchange;
  exchange.head_only = true;
  return run(url, exchange);
}

Response HttpClient::get(const std::string& url, size_t limit) {
  Exchange exchange;
  exchange.limit = limit;
  return run(url, exchange);
}

Response HttpClient::get(const std::string& url, uint64_t offset, BodySink& sink) {
  Exchange exchange;
  exchange.offset = offset;
  exchange.sink = &sink;
  return run(url, exchange);
}

Response HttpClient::run(const std::string& url, Exchange& exchange) {
  std::string address = url;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    Response response = run_one(address, exchange);
    if (!response.broken.empty() || response.status < 300 || response.status >= 400) return response;
    char* next = nullptr;
    curl_easy_getinfo(static_cast<CURL*>(curl_), CURLINFO_REDIRECT_URL, &next);
    if (next == nullptr) return response;
    const std::string origin = origin_of(next);
    if (exchange.head_only && origin != origin_of(address)) return response;
    if (origin.empty() || (address.starts_with("https://") && !origin.starts_with("https://"))) {
      throw Error(
          ErrorKind::unsupported,
          fmt::format("{}: redirects to {}; only http and https are followed, and https only to https",
                      printable(address), printable(next)));
    }
    address = next;
  }
  throw Error(ErrorKind::malformed, fmt::format("{}: more than {} redirects", printable(url), kMaxRedirects));
}

Response HttpClient::run_one(const std::string& url, Exchange& exchange) {
  CURL* curl = static_cast<CURL*>(curl_);
  curl_easy_reset(curl);  // keeps the connections
  exchange.curl = curl;
  exchange.origin = origin_of(url);
  exchange.stop = options_.stop;
  exchange.response = {};
  exchange.patience = std::chrono::seconds(options_.stall_seconds);
  exchange.last_news = Clock::now();
  exchange.received = 0;
  exchange.stalled = false;
  exchange.began = false;
  exchange.failure = nullptr;

  HeaderList headers;
  add(headers, "Accept-Encoding: identity");  // ranges and checksums are of the file as it is
  if (may_see_token(exchange.origin)) add(headers, "Authorization: Bearer " + options_.token);

  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "qwench");
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Exchange::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  if (exchange.head_only) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  const std::string range = fmt::format("{}-", exchange.offset);
  if (exchange.offset > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());

  const CURLcode code = curl_easy_perform(curl);
  if (options_.stop.stop_requested()) throw Stopped{};
  if (exchange.failure) std::rethrow_exception(exchange.failure);
  exchange.take_status();
  if (code == CURLE_OK) {
    exchange.begin();  // of an empty body
    return std::move(exchange.response);
  }
  std::string why = printable(*reason != '\0' ? reason : curl_easy_strerror(code));
  why = why.substr(1, why.size() - 2);  // without the quotes
  if (is_final(code)) throw Error(ErrorKind::io, fmt::format("{}: {}", exchange.origin, why));
  exchange.response.broken =
      exchange.stalled ? fmt::format("nothing came for {} s", options_.stall_seconds) : why;
  exchange.response.unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
                                  code == CURLE_COULDNT_RESOLVE_PROXY;
  return std::move(exchange.response);
}

}  // namespace qwench::hub
