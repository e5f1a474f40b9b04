#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "server/exchange.h"
#include "server/http_server.h"
#include "server/transport.h"

namespace qwench::server {

class Connection;
class RequestParser;

/// What the connections of a server share; all but `io` belongs to their thread.
struct ConnectionHub {
  boost::asio::io_context& io;
  const HttpOptions& options;
  HttpHandler& handler;
  std::unordered_set<std::shared_ptr<Connection>> open = {};
  std::function<void()> changed = {};  ///< a connection has gone
  size_t buffered_bytes = 0;           ///< of bodies
  bool draining = false;
};

/// One connection, from its handshake to its end: reads requests, one at a time, and writes their answers.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(ConnectionHub& hub, std::unique_ptr<Transport> transport, std::string client);
  ~Connection();

  void start();
  /// Answers with a 503 and closes.
  void start_refusing();
  /// To be called now and then: ends what has taken too long.
  void check_deadline(Clock::time_point now);
  /// Closes as soon as no request is under way.
  void drain();
  /// A request is with the handler, or its answer is on its way.
  bool busy() const;
  /// Closes now.
  void abort();

  // For the request's Exchange; `serial` tells requests of one connection apart.
  void respond(uint64_t serial, const HttpResponse& response);
  void start_stream(uint64_t serial, int status, const Headers& headers);
  void write(uint64_t serial, std::string_view part);
  void finish(uint64_t serial);
  void abandon(uint64_t serial);
  void on_disconnect(uint64_t serial, std::function<void()> left);

 private:
  enum class Phase {
    handshake,
    idle,       // between requests, without a byte of the next
    head,       // of a request
    body,       // of a request
    answering,  // the request is with the handler
    streaming,  // its answer has begun
    flushing,   // its answer is complete, and being sent
    lingering,  // all is sent; what the client still sends is dropped until it closes
    closed,
  };

  void read();
  void on_read(ErrorCode error, size_t count);
  void on_end_of_input();
  void parse();
  void begin_request();
  void on_head();
  void dispatch();
  void refuse(int status, const std::string& sentence);
  void send(const HttpResponse& response);
  void append_head(int status, const Headers& headers, std::optional<size_t> length);
  void pump();
  void on_sent();
  void client_left();
  void count_body(size_t bytes);
  void linger();
  void close();

  ConnectionHub& hub_;
  std::unique_ptr<Transport> transport_;
  const std::string client_;
  Phase phase_ = Phase::handshake;
  Clock::time_point deadline_;
  Clock::time_point write_deadline_;

  std::string in_;     // read and not parsed
  std::string chunk_;  // [kReadBytes], of the read under way
  bool reading_ = false;
  bool end_of_input_ = false;
  std::string out_;      // to be written next
  std::string writing_;  // being written, from written_ on
  size_t written_ = 0;
  bool write_under_way_ = false;

  std::unique_ptr<RequestParser> parser_;
  HttpRequest request_;  // its head; the body went to the handler
  uint64_t serial_ = 0;
  Clock::time_point begin_;
  size_t body_bytes_ = 0;  // counted in the hub
  int status_ = 0;
  bool knows_chunks_ = false;  // HTTP/1.1
  bool chunked_ = false;       // the answer is written in chunks
  bool head_only_ = false;     // the request is a HEAD
  bool keep_alive_ = false;
  std::function<void()> left_;
};

}  // namespace qwench::server
