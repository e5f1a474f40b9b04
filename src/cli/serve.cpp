#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/device_flags.h"
#include "cli/model_flags.h"
#include "cli/pooling_flag.h"
#include "engine/model_plan.h"
#include "hub/cache.h"
#include "qwench/error.h"
#include "server/server.h"

namespace qwench::cli {
namespace {

struct ServeOptions {
  ModelFlags model;
  server::ServerOptions server;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  int max_body_mb = 8;
  int max_connections = 4096;
  int drain_timeout = 30;
  int request_timeout = 600;
  std::string pooling;
  int cache_tokens = 0;
  std::string cache_memory;

  void add_to(CommandLine& line);
  void finish();
  EngineOptions engine() const;
};

void ServeOptions::add_to(CommandLine& line) {
  model.add_to(line, ModelFlags::Default::search, true);
  model.add_speculation_to(line);
  const std::string loading = "Loading";
  line.add_option("--kv-cache-tokens", cache_tokens,
                  "tokens of all answers together that the KV cache holds; when absent as memory and "
                  "--max-batch allow")
      .value_name("N")
      .whole_number()
      .group(loading);
  line.add_option("--kv-cache-memory", cache_memory, "the same as memory: 2GiB, 500MB")
      .value_name("SIZE")
      .group(loading);
  const std::string net = "Network";
  server::HttpOptions& http = server.http;
  line.add_option("--host", http.host, "address or name to listen on; 0.0.0.0 for every one")
      .value_name("HOST")
      .show_default()
      .group(net);
  line.add_option("--port", http.port, "0: one that is free")
      .value_name("N")
      .whole_number()
      .show_default()
      .group(net);
  line.add_option("--ssl-cert", http.ssl_cert, "serve https: the certificate chain, PEM")
      .value_name("FILE")
      .group(net);
  line.add_option("--ssl-key", http.ssl_key, "and its private key, PEM").value_name("FILE").group(net);
  const std::string access = "Access";
  line.add_option("--api-key", api_keys,
                  "a key that requests must bring; may be repeated; QWENCH_API_KEY is one too")
      .value_name("KEY")
      .repeatable()
      .group(access);
  line.add_option("--api-key-file", api_key_file, "a file of keys, one a line")
      .value_name("FILE")
      .group(access);
  line.add_option(
          "--cors-origin", server.service.cors_origins,
          "a web origin that may call this server, or *; may be repeated; pages of this machine when absent")
      .value_name("ORIGIN")
      .repeatable()
      .group(access);
  line.add_option("--served-model-name", server.service.model_names,
                  "the name in the API; may be repeated; the model's own when absent")
      .value_name("NAME")
      .repeatable()
      .group(access);
  line.add_option(
          "--pooling", pooling,
          "of embeddings that name none: mean or last; as the model's files say when absent, else mean")
      .value_name("KIND")
      .group("Embeddings");
  const std::string limits = "Limits";
  line.add_option("--max-queue", server.service.max_queue, "answers that may wait; more are refused with 429")
      .value_name("N")
      .whole_number()
      .show_default()
      .group(limits);
  line.add_option("--max-connections", max_connections, "connections open at once")
      .value_name("N")
      .whole_number()
      .show_default()
      .group(limits);
  line.add_option("--max-body-mb", max_body_mb, "megabytes of a request")
      .value_name("N")
      .whole_number()
      .show_default()
      .group(limits);
  line.add_option("--request-timeout", request_timeout, "seconds an answer may take; 0: any")
      .value_name("S")
      .whole_number()
      .show_default()
      .group(limits);
  line.add_option("--drain-timeout", drain_timeout,
                  "seconds that answers under way have when the server is to end")
      .value_name("S")
      .whole_number()
      .show_default()
      .group(limits);
  line.add_flag("--log-prompts", server.service.log_prompts, "log what is asked; never done otherwise");
}

void check_range(const char* flag, int value, int low, int high) {
  if (value < low || value > high)
    throw UsageError(fmt::format("{} {}: expected {} to {}", flag, value, low, high));
}

/// The name under which a model is served unless another is given: that of its folder, file or hub page.
std::string name_of(const std::filesystem::path& model) {
  const std::filesystem::path path = std::filesystem::absolute(model).lexically_normal();
  const std::filesystem::path folder = path.has_filename() ? path : path.parent_path();
  if (std::filesystem::is_regular_file(path)) return path.stem().string();
  const std::string pulled = hub::name_of_snapshot(folder);
  return pulled.empty() ? folder.filename().string() : pulled;
}

void ServeOptions::finish() {
  constexpr int kLongest = 1000000000;
  check_range("--port", server.http.port, 0, 65535);
  check_range("--max-queue", server.service.max_queue, 0, 1000000);
  check_range("--max-connections", max_connections, 1, 1000000);
  check_range("--max-body-mb", max_body_mb, 1, 1024);
  check_range("--request-timeout", request_timeout, 0, kLongest);
  check_range("--drain-timeout", drain_timeout, 0, kLongest);
  if (cache_tokens < 0 || cache_tokens > (1 << 30))
    throw UsageError(fmt::format("--kv-cache-tokens {}: expected 1 to 2^30", cache_tokens));
  if (cache_tokens > 0 && !cache_memory.empty())
    throw UsageError("--kv-cache-tokens and --kv-cache-memory say the same; give one of the two");
  if (!cache_memory.empty()) parse_bytes("--kv-cache-memory", cache_memory);
  if (server.http.ssl_cert.empty() != server.http.ssl_key.empty())
    throw UsageError("--ssl-cert and --ssl-key go together");
  server.service.pooling = pooling_flag(pooling);
  model.finish();
  server.http.max_connections = static_cast<size_t>(max_connections);
  server.http.max_body_bytes = static_cast<size_t>(max_body_mb) << 20;
  server.service.request_timeout = request_timeout;
  server.service.api_keys = api_keys;
  if (const char* key = std::getenv("QWENCH_API_KEY"); key != nullptr && *key != '\0')
    server.service.api_keys.emplace_back(key);
  if (!api_key_file.empty()) {
    for (std::string& key : server::read_key_file(api_key_file))
      server.service.api_keys.push_back(std::move(key));
  }
  if (server.service.model_names.empty()) server.service.model_names.push_back(name_of(model.path()));
}

/// How many tokens' keys and values that much memory holds.
int64_t tokens_within(uint64_t memory, const std::filesystem::path& model, EngineOptions options) {
  const auto checkpoint = Checkpoint::open(model);
  options.context = options.max_batch = options.max_batch_tokens = 1;
  options.device = "cpu";  // where it runs changes nothing here
  const uint64_t token =
      plan_model(*checkpoint, options, std::numeric_limits<uint64_t>::max() / 2).kv_per_token;
  if (memory / token >= uint64_t{1} << 30)
    throw UsageError("--kv-cache-memory: more than a cache can hold, 2^30 tokens");
  if (memory < token * kKvBlockTokens)
    throw UsageError(fmt::format("--kv-cache-memory: {} bytes hold less than {} tokens, of {} bytes each",
                                 memory, kKvBlockTokens, token));
  return static_cast<int64_t>(memory / (token * kKvBlockTokens) * kKvBlockTokens);
}

EngineOptions ServeOptions::engine() const {
  EngineOptions options = model.options();
  options.max_queue = server.service.max_queue;
  options.cache_tokens = cache_tokens;
  if (!cache_memory.empty())
    options.cache_tokens =
        tokens_within(parse_bytes("--kv-cache-memory", cache_memory), model.path(), options);
  return options;
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

/// Takes what comes in the next moment: `timeout` and some shells signal a process and then its whole group,
/// which is one wish and not two.
void skip_echoes() {
  const sigset_t signals = ending_signals();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) {
    const timespec pause{0, 20'000'000};
    sigtimedwait(&signals, nullptr, &pause);
  }
}

int wait_for_signal() {
  const sigset_t signals = ending_signals();
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  return signal;
}

int serve(const ServeOptions& options) {
  // Blocked in this thread, and so in all that it begins: signals come through sigwait alone.
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  server::raise_file_limit();

  server::JsonLog log(stderr);
  std::unique_ptr<Engine> engine;
  server::Server server(options.server, log);
  // A model cannot be stopped half loaded: until it is there, a signal ends the program.
  std::atomic<bool> loaded{false};
  std::thread early([&] {
    while (!loaded) {
      const timespec pause{0, 100'000'000};
      const sigset_t waited = ending_signals();
      if (sigtimedwait(&waited, nullptr, &pause) > 0) std::_Exit(0);
    }
  });
  try {
    engine = Engine::load(options.model.path(), options.engine());
  } catch (...) {
    loaded = true;
    early.join();
    throw;
  }
  loaded = true;
  early.join();
  server.set_engine(*engine);

  wait_for_signal();
  log.info("draining", Json{{"timeout_seconds", options.drain_timeout}});
  std::thread again([] {
    skip_echoes();
    const int signal = wait_for_signal();
    std::_Exit(128 + signal);
  });
  again.detach();
  const bool whole = server.drain(std::chrono::seconds(options.drain_timeout));
  log.info("ended", Json{{"all_answered", whole}});
  return 0;
}

}  // namespace

int serve_command(const Arguments& arguments) {
  CommandLine line(
      "serve",
      "Serves a model over HTTP, by OpenAI's API. Without MODEL: as qwench run. SIGTERM or Ctrl-C: "
      "answers under way are finished, a second one ends at once.",
      "  qwench serve ~/models/Qwen3-0.6B\n"
      "  qwench serve model.gguf --port 9000 --max-batch 16 -c 8192\n"
      "  qwench serve model.gguf --host 0.0.0.0 --api-key-file keys.txt\n");
  ServeOptions options;
  options.add_to(line);
  if (!line.parse(arguments)) return 0;
  options.finish();
  return serve(options);
}

}  // namespace qwench::cli
