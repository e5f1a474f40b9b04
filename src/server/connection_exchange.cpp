#include "server/connection_exchange.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace qwench::server {

ConnectionExchange::ConnectionExchange(boost::asio::io_context& io, std::weak_ptr<Connection> connection,
                                       uint64_t serial)
    : io_(io), connection_(std::move(connection)), serial_(serial) {}

template <typename F>
void ConnectionExchange::post(F f) {
  boost::asio::post(io_, [weak = connection_, f = std::move(f)]() mutable {
    if (const auto connection = weak.lock()) f(*connection);
  });
}

ConnectionExchange::~ConnectionExchange() {
  post([serial = serial_](Connection& connection) { connection.abandon(serial); });
}

void ConnectionExchange::respond(HttpResponse response) {
  post([serial = serial_, response = std::move(response)](Connection& connection) {
    connection.respond(serial, response);
  });
}

void ConnectionExchange::start_stream(int status, Headers headers) {
  post([serial = serial_, status, headers = std::move(headers)](Connection& connection) {
    connection.start_stream(serial, status, headers);
  });
}

void ConnectionExchange::write(std::string part) {
  post(
      [serial = serial_, part = std::move(part)](Connection& connection) { connection.write(serial, part); });
}

void ConnectionExchange::finish() {
  post([serial = serial_](Connection& connection) { connection.finish(serial); });
}

void ConnectionExchange::on_disconnect(std::function<void()> left) {
  boost::asio::post(io_, [weak = connection_, serial = serial_, left = std::move(left)]() mutable {
    if (const auto connection = weak.lock()) {
      connection->on_disconnect(serial, std::move(left));
    } else {
      left();
    }
  });
}

}  // namespace qwench::server
