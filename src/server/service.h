#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "qwench/engine.h"
#include "server/api_access.h"
#include "server/exchange.h"
#include "server/generation_routes.h"
#include "server/generation_task.h"
#include "server/json_log.h"
#include "server/metrics.h"
#include "server/request_body.h"
#include "server/request_maker.h"
#include "server/watchers.h"
#include "server/work_queue.h"

namespace qwench::server {

struct ServiceOptions {
  std::vector<std::string> model_names;  ///< the served model's; the first is shown in answers
  std::vector<std::string> api_keys;
  std::vector<std::string> cors_origins;
  double request_timeout = 600;  ///< seconds from a request's arrival to its answer's end; 0: none
  int max_queue = 1024;          ///< choices that may wait; as the engine has it
  bool log_prompts = false;
  std::optional<Pooling> pooling;  ///< of embeddings that name none; as the model's files say when absent
};

/// The API of one model, over any HTTP server: routes, access, and the requests under way. It answers from
/// its construction on: before set_engine() that the model is loading, after drain() that it is going away.
class Service : public HttpHandler {
 public:
  /// Throws Error (invalid_argument).
  Service(ServiceOptions options, JsonLog& log);
  ~Service() override;

  void set_engine(Engine& engine);                       ///< which must outlive the service
  void count_connections(std::function<size_t()> open);  ///< for /metrics; before serving
  void drain();  ///< refuses new requests of the API; those under way go on
  /// Ends all requests, and waits until none is left. Nothing is answered after it.
  void close();

  // Called by the thread of the connections.
  bool accept(const HttpRequest& head, HttpResponse& response) override;
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
  HttpResponse refuse(int status, const std::string& sentence, const HttpRequest& head) override;
  void answered(const HttpRequest& request, int status, double seconds, bool complete) override;

 private:
  enum class State { loading, ready, draining };

  std::optional<HttpResponse> refuse_head(const HttpRequest& head) const;
  HttpResponse answer_get(const HttpRequest& request) const;
  HttpResponse answer_post(const HttpRequest& request) const;
  HttpResponse health() const;
  HttpResponse models(const std::string& path) const;
  ServedModel served_model() const;
  void generate(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
  void run(GenerationJob job);
  void tick();
  void watch(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange);
  void step_watchers();
  void check_model(const std::string& name) const;
  HttpResponse with_cors(HttpResponse response, const HttpRequest& request) const;

  const ServiceOptions options_;
  const ApiKeys keys_;
  const CorsPolicy cors_;
  JsonLog& log_;
  Metrics metrics_;
  const RequestMaker maker_;
  std::function<size_t()> connections_ = [] { return size_t{0}; };
  std::atomic<Engine*> engine_{nullptr};
  std::atomic<State> state_{State::loading};

  std::set<std::shared_ptr<GenerationTask>> tasks_;  // of the thread of answers_
  Watchers watchers_;                                // of the thread of answers_
  std::atomic<bool> watched_{false};
  WorkQueue parsing_{2};  // bodies to requests: a long prompt takes long, and must hold up no answer
  WorkQueue answers_{1};  // pieces to JSON
  std::atomic<bool> ticking_{true};
  std::thread ticker_;
};

}  // namespace qwench::server
