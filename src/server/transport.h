#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <string>

namespace qwench::server {

using ErrorCode = boost::system::error_code;

/// A byte stream to a client, plain or TLS. All functions and callbacks belong to the thread of the
/// connections; a read and a write may be under way at once, but not two of a kind.
class Transport {
 public:
  using Done = std::function<void(ErrorCode, size_t)>;

  virtual ~Transport() = default;
  virtual void handshake(std::function<void(ErrorCode)> done) = 0;
  virtual void read_some(boost::asio::mutable_buffer into, Done done) = 0;
  virtual void write_some(boost::asio::const_buffer from, Done done) = 0;
  /// Tells the client that no more comes; what it still sends may be read.
  virtual void shutdown_send() = 0;
  virtual void close() = 0;
  virtual bool is_open() const = 0;
};

std::unique_ptr<Transport> plain_transport(boost::asio::ip::tcp::socket socket);
std::unique_ptr<Transport> tls_transport(boost::asio::ip::tcp::socket socket,
                                         boost::asio::ssl::context& context);

/// Of PEM files. Throws Error (invalid_argument) that names the file.
std::unique_ptr<boost::asio::ssl::context> tls_context(const std::string& certificate,
                                                       const std::string& key);

}  // namespace qwench::server
