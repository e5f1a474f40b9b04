#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "server/connection.h"
#include "server/exchange.h"

namespace qwench::server {

/// Hands what any thread answers to the thread of the connections.
class ConnectionExchange : public Exchange {
 public:
  ConnectionExchange(boost::asio::io_context& io, std::weak_ptr<Connection> connection, uint64_t serial);
  ~ConnectionExchange() override;

  void respond(HttpResponse response) override;
  void start_stream(int status, Headers headers) override;
  void write(std::string part) override;
  void finish() override;
  void on_disconnect(std::function<void()> left) override;

 private:
  template <typename F>
  void post(F f);

  boost::asio::io_context& io_;
  std::weak_ptr<Connection> connection_;
  uint64_t serial_;
};

}  // namespace qwench::server
