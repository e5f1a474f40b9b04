#include "server/request_parser.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <limits>
#include <optional>

namespace qwench::server {
namespace http = boost::beast::http;

struct RequestParser::Impl {
  http::request_parser<http::string_body> parser;
  std::optional<http::request_header<>> head;  // as it was before trailers, which the parser adds to it
  size_t max_header_bytes;
  size_t max_body_bytes;
};

namespace {

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

RequestParser::RequestParser(size_t max_header_bytes, size_t max_body_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->max_header_bytes = max_header_bytes;
  impl_->max_body_bytes = max_body_bytes;
  impl_->parser.header_limit(
      static_cast<uint32_t>(std::min<size_t>(max_header_bytes, std::numeric_limits<uint32_t>::max())));
  impl_->parser.body_limit(max_body_bytes);
}

RequestParser::~RequestParser() = default;

size_t RequestParser::put(std::string_view bytes, Failure& failure) {
  boost::system::error_code error;
  size_t used = impl_->parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  if (!impl_->head && impl_->parser.is_header_done()) impl_->head = impl_->parser.get().base();
  if (!error && impl_->head && !impl_->parser.eager()) {
    impl_->parser.eager(true);
    bytes.remove_prefix(used);
    if (!bytes.empty() && !done())
      used += impl_->parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  }
  if (!error || error == http::error::need_more) return used;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    failure = {431, fmt::format("the request's headers have more than {} bytes, the most there may be",
                                impl_->max_header_bytes)};
  } else if (error == http::error::body_limit) {
    failure = {413, fmt::format("the request's body has more than {} bytes, the most there may be",
                                impl_->max_body_bytes)};
  } else if (error == http::error::bad_version) {
    failure = {505, "the request's protocol is not HTTP/1.0 or HTTP/1.1"};
  } else {
    failure = {400, fmt::format("the request is not valid HTTP: {}", error.message())};
  }
  return used;
}

bool RequestParser::has_head() const { return impl_->head.has_value(); }
bool RequestParser::done() const { return impl_->parser.is_done(); }
size_t RequestParser::body_size() const { return impl_->parser.get().body().size(); }
bool RequestParser::keep_alive() const { return impl_->parser.keep_alive(); }
int RequestParser::version() const { return static_cast<int>(impl_->parser.get().version()); }

void RequestParser::read_head(HttpRequest& request) const {
  const auto& message = *impl_->head;
  request.method = view(message.method_string());
  const std::string_view target = view(message.target());
  const size_t question = target.find('?');
  request.path = target.substr(0, question);
  request.query = question == std::string_view::npos ? "" : target.substr(question + 1);
  request.headers.clear();
  for (const auto& field : message) {
    request.headers.emplace_back(view(field.name_string()), view(field.value()));
  }
}

RequestParser::Failure RequestParser::check_head() const {
  const auto& message = *impl_->head;
  const auto count = [&](http::field field) {
    const auto range = message.equal_range(field);
    return std::distance(range.first, range.second);
  };
  const bool encoded = count(http::field::transfer_encoding) > 0;
  if (version() == 11 && count(http::field::host) != 1) {
    return {400, fmt::format("the request has {} Host headers, expected one", count(http::field::host))};
  }
  if (encoded && count(http::field::content_length) > 0) {
    return {400, "the request has both Content-Length and Transfer-Encoding, expected one of them"};
  }
  if (encoded && !impl_->parser.chunked()) {
    return {501, "the request's Transfer-Encoding is not supported; send it chunked or with Content-Length"};
  }
  const auto expect = message.find(http::field::expect);
  if (expect != message.end() && !expects_continue()) {
    return {417, "the request expects something other than 100-continue, which is not supported"};
  }
  return {};
}

bool RequestParser::expects_continue() const {
  const auto& message = *impl_->head;
  const auto expect = message.find(http::field::expect);
  return expect != message.end() && equal_ignoring_case(view(expect->value()), "100-continue");
}

std::string RequestParser::take_body() { return std::move(impl_->parser.get().body()); }

}  // namespace qwench::server
