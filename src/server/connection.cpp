#include "server/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/connection_exchange.h"
#include "server/request_id.h"
#include "server/request_parser.h"

namespace qwench::server {
namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kReadAhead = 64 << 10;  // of further requests, while one is answered
constexpr std::chrono::seconds kLinger{5};

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return {text, length};
}

}  // namespace

Connection::Connection(ConnectionHub& hub, std::unique_ptr<Transport> transport, std::string client)
    : hub_(hub), transport_(std::move(transport)), client_(std::move(client)), chunk_(kReadBytes, '\0') {}

Connection::~Connection() = default;

void Connection::start() {
  deadline_ = Clock::now() + hub_.options.header_timeout;
  transport_->handshake([self = shared_from_this()](ErrorCode error) {
    if (self->phase_ == Phase::closed) return;
    if (error) return self->close();
    self->phase_ = Phase::idle;
    self->deadline_ = Clock::now() + self->hub_.options.idle_timeout;
    self->read();
  });
}

void Connection::start_refusing() {
  deadline_ = Clock::now() + kLinger;
  transport_->handshake([self = shared_from_this()](ErrorCode error) {
    if (self->phase_ == Phase::closed) return;
    if (error) return self->close();
    self->phase_ = Phase::idle;
    self->begin_request();
    self->refuse(503,
                 fmt::format("the server has {} connections open, the most there may be; try again later",
                             self->hub_.options.max_connections));
    self->read();
  });
}

void Connection::read() {
  if (reading_ || end_of_input_ || phase_ == Phase::closed || in_.size() >= kReadAhead) return;
  reading_ = true;
  transport_->read_some(boost::asio::buffer(chunk_),
                        [self = shared_from_this()](ErrorCode error, size_t count) {
                          self->reading_ = false;
                          self->on_read(error, count);
                        });
}

void Connection::on_read(ErrorCode error, size_t count) {
  if (phase_ == Phase::closed) return;
  if (error) {
    end_of_input_ = true;
    return on_end_of_input();
  }
  if (phase_ != Phase::lingering) {
    in_.append(chunk_, 0, count);
    parse();
  }
  read();
}

void Connection::on_end_of_input() {
  switch (phase_) {
    case Phase::answering:
    case Phase::streaming:
      return client_left();
    case Phase::flushing:
      keep_alive_ = false;
      return;
    default:
      return close();
  }
}

void Connection::parse() {
  while (phase_ == Phase::idle || phase_ == Phase::head || phase_ == Phase::body) {
    if (phase_ == Phase::idle) {
      in_.erase(0, std::min(in_.find_first_not_of("\r\n"), in_.size()));
      if (in_.empty()) return;
      begin_request();
    }
    RequestParser::Failure failure;
    const size_t used = parser_->put(in_, failure);
    in_.erase(0, used);
    if (failure.status != 0) {
      if (parser_->has_head()) parser_->read_head(request_);
      return refuse(failure.status, failure.sentence);
    }
    count_body(parser_->body_size());
    if (hub_.buffered_bytes > hub_.options.max_buffered_bytes) {
      return refuse(503, "the server holds as many bytes of requests as it may; try again later");
    }
    if (phase_ == Phase::head && parser_->has_head()) on_head();
    if (phase_ == Phase::body && parser_->done()) dispatch();
    if (used == 0) return;
  }
}

void Connection::begin_request() {
  parser_ = std::make_unique<RequestParser>(hub_.options.max_header_bytes, hub_.options.max_body_bytes);
  request_ = {};
  request_.client = client_;
  request_.id = new_request_id();
  ++serial_;
  phase_ = Phase::head;
  begin_ = Clock::now();
  deadline_ = begin_ + hub_.options.header_timeout;
  status_ = 0;
  chunked_ = head_only_ = keep_alive_ = false;
}

void Connection::on_head() {
  parser_->read_head(request_);
  const std::string* id = find_header(request_.headers, "x-request-id");
  if (id != nullptr && is_request_id(*id)) request_.id = *id;
  head_only_ = request_.method == "HEAD";
  const RequestParser::Failure failure = parser_->check_head();
  if (failure.status != 0) return refuse(failure.status, failure.sentence);
  phase_ = Phase::body;
  deadline_ = Clock::now() + hub_.options.body_timeout;
  knows_chunks_ = parser_->version() == 11;
  keep_alive_ = parser_->keep_alive();
  HttpResponse response;
  if (!hub_.handler.accept(request_, response)) {
    keep_alive_ = keep_alive_ && parser_->done();  // else its body would be read as the next request
    return send(response);
  }
  if (parser_->expects_continue() && !parser_->done()) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    pump();
  }
}

void Connection::dispatch() {
  phase_ = Phase::answering;
  HttpRequest request = request_;
  request.body = parser_->take_body();
  parser_.reset();
  hub_.handler.handle(std::move(request),
                      std::make_shared<ConnectionExchange>(hub_.io, weak_from_this(), serial_));
}

void Connection::count_body(size_t bytes) {
  hub_.buffered_bytes += bytes - body_bytes_;
  body_bytes_ = bytes;
}

void Connection::refuse(int status, const std::string& sentence) {
  keep_alive_ = false;
  in_.clear();
  send(hub_.handler.refuse(status, sentence, request_));
}

void Connection::send(const HttpResponse& response) {
  phase_ = Phase::flushing;
  status_ = response.status;
  append_head(response.status, response.headers, response.body.size());
  if (!head_only_) out_ += response.body;
  pump();
}

void Connection::append_head(int status, const Headers& headers, std::optional<size_t> length) {
  if (hub_.draining || end_of_input_) keep_alive_ = false;
  out_ += fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nx-request-id: {}\r\n", status, reason_phrase(status),
                      http_date(), request_.id);
  for (const auto& [name, value] : headers) out_ += fmt::format("{}: {}\r\n", name, value);
  if (chunked_) {
    out_ += "Transfer-Encoding: chunked\r\n";
  } else if (length && status != 204) {
    out_ += fmt::format("Content-Length: {}\r\n", *length);
  }
  out_ += keep_alive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
}

void Connection::respond(uint64_t serial, const HttpResponse& response) {
  if (serial == serial_ && phase_ == Phase::answering) send(response);
}

void Connection::start_stream(uint64_t serial, int status, const Headers& headers) {
  if (serial != serial_ || phase_ != Phase::answering) return;
  phase_ = Phase::streaming;
  status_ = status;
  chunked_ = knows_chunks_;
  if (!chunked_) keep_alive_ = false;  // the answer ends where the connection does
  append_head(status, headers, std::nullopt);
  pump();
}

void Connection::write(uint64_t serial, std::string_view part) {
  if (serial != serial_ || phase_ != Phase::streaming || part.empty()) return;
  if (out_.size() + part.size() > hub_.options.max_unsent_bytes) return abort();
  if (chunked_) out_ += fmt::format("{:x}\r\n", part.size());
  out_ += part;
  if (chunked_) out_ += "\r\n";
  pump();
}

void Connection::finish(uint64_t serial) {
  if (serial != serial_ || phase_ != Phase::streaming) return;
  if (chunked_) out_ += "0\r\n\r\n";
  phase_ = Phase::flushing;
  pump();
}

void Connection::abandon(uint64_t serial) {
  if (serial != serial_) return;
  if (phase_ == Phase::streaming || (phase_ == Phase::answering && end_of_input_)) return abort();
  if (phase_ != Phase::answering) return;
  keep_alive_ = false;
  send(hub_.handler.refuse(500, "the request was dropped without an answer; this is a fault of the server",
                           request_));
}

void Connection::on_disconnect(uint64_t serial, std::function<void()> left) {
  const bool answering = phase_ == Phase::answering || phase_ == Phase::streaming;
  if (serial == serial_ && answering && !end_of_input_) {
    left_ = std::move(left);
  } else if (serial != serial_ || phase_ != Phase::flushing) {
    left();
  }
}

void Connection::client_left() {
  keep_alive_ = false;
  if (const auto left = std::exchange(left_, nullptr)) left();
}

void Connection::pump() {
  if (write_under_way_ || phase_ == Phase::closed) return;
  if (written_ == writing_.size()) {
    writing_.clear();
    written_ = 0;
    std::swap(writing_, out_);
  }
  if (writing_.empty()) {
    if (phase_ == Phase::flushing) on_sent();
    return;
  }
  write_under_way_ = true;
  write_deadline_ = Clock::now() + hub_.options.write_timeout;
  transport_->write_some(boost::asio::buffer(writing_) + written_,
                         [self = shared_from_this()](ErrorCode error, size_t count) {
                           self->write_under_way_ = false;
                           if (self->phase_ == Phase::closed) return;
                           if (error) return self->abort();
                           self->written_ += count;
                           self->pump();
                         });
}

void Connection::on_sent() {
  left_ = nullptr;
  count_body(0);
  parser_.reset();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  hub_.handler.answered(request_, status_, seconds, true);
  if (!keep_alive_ || hub_.draining) return linger();
  phase_ = Phase::idle;
  deadline_ = Clock::now() + hub_.options.idle_timeout;
  // Not from within pump(): answers of many pipelined requests would nest.
  boost::asio::post(hub_.io, [self = shared_from_this()] {
    if (self->phase_ != Phase::idle) return;
    self->parse();
    self->read();
  });
}

// Closing while bytes of the client lie unread would send a reset, which may overtake the answer.
void Connection::linger() {
  if (end_of_input_) return close();
  phase_ = Phase::lingering;
  deadline_ = Clock::now() + kLinger;
  in_.clear();
  transport_->shutdown_send();
  read();
}

void Connection::check_deadline(Clock::time_point now) {
  if (write_under_way_ && now > write_deadline_) return abort();
  if (now <= deadline_) return;
  switch (phase_) {
    case Phase::head:
    case Phase::body:
      return refuse(408, phase_ == Phase::head ? "the request's headers took too long to arrive"
                                               : "the request's body took too long to arrive");
    case Phase::handshake:
    case Phase::idle:
    case Phase::lingering:
      return close();
    default:
      return;
  }
}

void Connection::drain() {
  if (phase_ == Phase::handshake || phase_ == Phase::idle || phase_ == Phase::head) close();
}

bool Connection::busy() const {
  return phase_ == Phase::answering || phase_ == Phase::streaming || phase_ == Phase::flushing;
}

void Connection::abort() {
  if (busy()) {
    client_left();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    hub_.handler.answered(request_, status_, seconds, false);
  }
  close();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  count_body(0);
  left_ = nullptr;
  transport_->close();
  hub_.open.erase(shared_from_this());
  if (hub_.changed) hub_.changed();
}

}  // namespace qwench::server
