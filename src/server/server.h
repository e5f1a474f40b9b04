#pragma once

#include <chrono>
#include <memory>

#include "server/http_server.h"
#include "server/json_log.h"
#include "server/service.h"

namespace qwench::server {

struct ServerOptions {
  HttpOptions http;
  ServiceOptions service;
};

/// The API on the network. It answers from its construction on, at first that the model is loading.
class Server {
 public:
  /// Throws Error (io, invalid_argument) where it cannot listen, or an option is wrong.
  Server(ServerOptions options, JsonLog& log);
  ~Server();

  const std::vector<std::string>& urls() const { return http_.urls(); }
  void set_engine(Engine& engine);  ///< which must outlive this
  /// Refuses new requests, waits for those under way, and ends what is left after `timeout`; true where
  /// nothing was.
  bool drain(std::chrono::milliseconds timeout);

 private:
  JsonLog& log_;
  Service service_;
  HttpServer http_;
};

/// Lets this process hold so many files and connections as the system allows it.
void raise_file_limit();

}  // namespace qwench::server
