#include "server/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <thread>

#include "qwench/error.h"
#include "server/connection.h"

namespace qwench::server {
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::milliseconds kSweep{500};
constexpr size_t kRefusedAtOnce = 64;  // connections beyond the most there may be that still hear why

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions wanted, HttpHandler& http_handler)
      : options(std::move(wanted)), hub{io, options, http_handler}, sweep(io) {
    hub.changed = [this] { count(); };
    if (options.ssl_cert.empty() != options.ssl_key.empty())
      throw Error(ErrorKind::invalid_argument, "--ssl-cert and --ssl-key go together");
    if (!options.ssl_cert.empty()) tls = tls_context(options.ssl_cert, options.ssl_key);
    listen();
  }

  void listen() {
    const auto fail = [&](const std::string& why) {
      throw Error(ErrorKind::io,
                  fmt::format("{} port {} cannot be listened on: {}", options.host, options.port, why));
    };
    ErrorCode error;
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) fail(error.message());
    int port = options.port;
    for (const auto& entry : found) {
      tcp::endpoint endpoint = entry.endpoint();
      endpoint.port(static_cast<uint16_t>(port));
      tcp::acceptor acceptor(io);
      acceptor.open(endpoint.protocol(), error);
      if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
      if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
      if (!error) acceptor.bind(endpoint, error);
      if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
      if (error) {
        // A name such as localhost may stand for an address of a kind that this machine does not have.
        if (error == asio::error::address_family_not_supported ||
            error == boost::system::errc::address_not_available)
          continue;
        fail(error.message());
      }
      port = acceptor.local_endpoint().port();
      urls.push_back(fmt::format("{}://{}", tls ? "https" : "http", to_text(acceptor.local_endpoint())));
      acceptors.push_back(std::move(acceptor));
    }
    if (acceptors.empty()) fail(error ? error.message() : "the name stands for no address");
  }

  void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](ErrorCode error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (error) {
        // Most likely no file descriptor is left: wait until connections have closed.
        auto timer = std::make_shared<asio::steady_timer>(io, std::chrono::milliseconds(50));
        timer->async_wait([this, &acceptor, timer](ErrorCode) {
          if (acceptor.is_open()) accept(acceptor);
        });
        return;
      }
      take(std::move(socket));
      accept(acceptor);
    });
  }

  void take(tcp::socket socket) {
    ErrorCode error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error || hub.open.size() >= options.max_connections + kRefusedAtOnce) return;
    socket.set_option(tcp::no_delay(true), error);
    auto transport = tls ? tls_transport(std::move(socket), *tls) : plain_transport(std::move(socket));
    auto connection = std::make_shared<Connection>(hub, std::move(transport), to_text(peer));
    const bool full = hub.open.size() >= options.max_connections;
    hub.open.insert(connection);
    count();
    if (full) {
      connection->start_refusing();
    } else {
      connection->start();
    }
  }

  void check_deadlines() {
    sweep.expires_after(kSweep);
    sweep.async_wait([this](ErrorCode error) {
      if (error) return;
      const auto now = Connection::Clock::now();
      for (const auto& connection : connections()) connection->check_deadline(now);
      check_deadlines();
    });
  }

  std::vector<std::shared_ptr<Connection>> connections() const { return {hub.open.begin(), hub.open.end()}; }

  void count() { open = hub.open.size(); }

  HttpOptions options;
  asio::io_context io{1};
  ConnectionHub hub;
  std::unique_ptr<asio::ssl::context> tls;
  std::vector<tcp::acceptor> acceptors;
  std::vector<std::string> urls;
  asio::steady_timer sweep;
  std::thread thread;
  std::atomic<size_t> open{0};
};

HttpServer::HttpServer(HttpOptions options, HttpHandler& handler)
    : impl_(std::make_unique<Impl>(std::move(options), handler)) {}

HttpServer::~HttpServer() {
  if (impl_->thread.joinable()) {
    asio::post(impl_->io, [this] {
      for (auto& acceptor : impl_->acceptors) acceptor.close();
      for (const auto& connection : impl_->connections()) connection->abort();
      impl_->io.stop();
    });
    impl_->thread.join();
  }
}

const std::vector<std::string>& HttpServer::urls() const { return impl_->urls; }

size_t HttpServer::connections() const { return impl_->open; }

void HttpServer::start() {
  for (auto& acceptor : impl_->acceptors) impl_->accept(acceptor);
  impl_->check_deadlines();
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

void HttpServer::drain() {
  asio::post(impl_->io, [this] {
    impl_->hub.draining = true;
    for (const auto& connection : impl_->connections()) connection->drain();
  });
}

bool HttpServer::wait_until_idle(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    std::promise<bool> idle;
    asio::post(impl_->io, [&] {
      const auto& open = impl_->hub.open;
      idle.set_value(std::none_of(open.begin(), open.end(), [](const auto& c) { return c->busy(); }));
    });
    if (idle.get_future().get()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace qwench::server
