#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/exchange.h"

namespace qwench::server {

struct HttpOptions {
  std::string host = "127.0.0.1";  ///< a name or an address; every address it stands for is listened on
  int port = 8080;                 ///< 0: one that is free
  std::string ssl_cert;            ///< PEM files, both or neither
  std::string ssl_key;

  size_t max_connections = 4096;  ///< those beyond get a 503
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 8 << 20;
  size_t max_buffered_bytes = 512 << 20;    ///< of all bodies that are read or answered at once
  size_t max_unsent_bytes = 4 << 20;        ///< of a stream whose client does not read: then it has left
  std::chrono::seconds header_timeout{30};  ///< from the first byte of a request to the end of its headers
  std::chrono::seconds body_timeout{300};   ///< from there to the end of its body
  std::chrono::seconds idle_timeout{300};   ///< without any byte of a next request
  std::chrono::seconds write_timeout{60};   ///< without the client taking a byte
};

/// An HTTP/1.1 server. One thread serves all connections without blocking: a connection costs some kilobytes,
/// and one that is slow or idle holds up no other. Pipelined requests are answered one after another.
class HttpServer {
 public:
  /// Binds and listens. `handler` must outlive it. Throws Error (io, invalid_argument) that names the address
  /// or file.
  HttpServer(HttpOptions options, HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::vector<std::string>& urls() const;  ///< "http://127.0.0.1:8080"
  size_t connections() const;                    ///< open now; from any thread

  /// Serves from a thread of its own until the destructor.
  void start();
  /// From now on every answer closes its connection, and so does having no request under way. New connections
  /// are still taken, so that the handler can say why it refuses them.
  void drain();
  /// Waits until no request is being answered; false where one is after `timeout`. Not before start().
  bool wait_until_idle(std::chrono::milliseconds timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qwench::server
