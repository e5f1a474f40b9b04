#include "server/server.h"

#include <sys/resource.h>

#include <utility>

namespace qwench::server {

Server::Server(ServerOptions options, JsonLog& log)
    : log_(log), service_(std::move(options.service), log), http_(std::move(options.http), service_) {
  service_.count_connections([this] { return http_.connections(); });
  http_.start();
  log_.info("listening", Json{{"urls", http_.urls()}});
}

// Requests hold connections, and connections ask the service: first the requests go, then the connections.
Server::~Server() { service_.close(); }

void Server::set_engine(Engine& engine) {
  service_.set_engine(engine);
  const ModelInfo& info = engine.info();
  log_.info("ready", Json{{"model", info.name},
                          {"family", info.family},
                          {"weight_type", info.weight_type},
                          {"device", info.device},
                          {"threads", info.threads},
                          {"context", info.context},
                          {"max_batch", info.max_batch}});
}

bool Server::drain(std::chrono::milliseconds timeout) {
  service_.drain();
  http_.drain();
  const bool done = http_.wait_until_idle(timeout);
  service_.close();
  return done;
}

void raise_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace qwench::server
