#include "server/transport.h"

#include <fmt/format.h>

#include <boost/asio/ssl/stream.hpp>
#include <utility>

#include "qwench/error.h"

namespace qwench::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

void close_socket(tcp::socket& socket) {
  ErrorCode ignored;
  socket.shutdown(tcp::socket::shutdown_both, ignored);
  socket.close(ignored);
}

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket) : socket_(std::move(socket)) {}

  void handshake(std::function<void(ErrorCode)> done) override { done({}); }
  void read_some(asio::mutable_buffer into, Done done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void write_some(asio::const_buffer from, Done done) override {
    socket_.async_write_some(from, std::move(done));
  }
  void shutdown_send() override {
    ErrorCode ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void close() override { close_socket(socket_); }
  bool is_open() const override { return socket_.is_open(); }

 private:
  tcp::socket socket_;
};

class TlsTransport : public Transport {
 public:
  TlsTransport(tcp::socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}

  void handshake(std::function<void(ErrorCode)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void read_some(asio::mutable_buffer into, Done done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void write_some(asio::const_buffer from, Done done) override {
    stream_.async_write_some(from, std::move(done));
  }
  // The close_notify alert is not sent: it would have to wait for a client that may never read. Every answer
  // is framed by its length or its last chunk, so that a cut one is known.
  void shutdown_send() override {
    ErrorCode ignored;
    stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
  }
  void close() override { close_socket(stream_.next_layer()); }
  bool is_open() const override { return stream_.next_layer().is_open(); }

 private:
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> tls_transport(tcp::socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

std::unique_ptr<asio::ssl::context> tls_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                       asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1 | asio::ssl::context::single_dh_use);
  ErrorCode error;
  context->use_certificate_chain_file(certificate, error);
  if (error) {
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: cannot be read as a certificate in PEM form: {}", certificate, error.message()));
  }
  context->use_private_key_file(key, asio::ssl::context::pem, error);
  if (error) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: cannot be read as the private key, in PEM form, of {}: {}", key, certificate,
                            error.message()));
  }
  return context;
}

}  // namespace qwench::server
