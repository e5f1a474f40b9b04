#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/http_message.h"

namespace qwench::server {

/// The answer to one request on its way to the client: either one respond(), or start_stream(), any number of
/// write() and finish(). All functions return at once, may be called from any thread, keep their order within
/// one thread, and do nothing once the client has left. One that is destroyed without an answer gives a 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void respond(HttpResponse response) = 0;
  /// The status line and headers of an answer whose length is not known yet.
  virtual void start_stream(int status, Headers headers) = 0;
  virtual void write(std::string part) = 0;
  virtual void finish() = 0;
  /// Calls `left`, once, from the thread of the connections, where the client leaves before the answer is
  /// complete; at once where it has left. A client that closes its sending side has left.
  virtual void on_disconnect(std::function<void()> left) = 0;
};

/// What answers requests. Both are called by the thread that serves all connections and must return at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  /// Looks at a request whose body has not been read; false when it was answered by `response`.
  virtual bool accept(const HttpRequest& head, HttpResponse& response) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
  /// The answer to what is no request (400, 408, 413, 431, 503, ...); `sentence` says what is wrong.
  virtual HttpResponse refuse(int status, const std::string& sentence, const HttpRequest& head) = 0;
  /// Called once for each answer that has been sent, or has failed to be.
  virtual void answered(const HttpRequest& request, int status, double seconds, bool complete) = 0;
};

}  // namespace qwench::server
