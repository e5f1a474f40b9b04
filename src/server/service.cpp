#include "server/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <utility>

#include "core/utf8.h"
#include "server/anthropic_request.h"
#include "server/model_pages.h"
#include "server/ollama_pages.h"
#include "server/ollama_request.h"
#include "server/openapi.h"
#include "server/page_files.h"
#include "server/routes.h"

namespace qwench::server {
namespace {

constexpr std::chrono::seconds kTick{1};
constexpr int kWatchTurns = 4;  // of 50 ms each

std::string allow_of(const Route& route) {
  return route.method == "GET" ? "GET, HEAD, OPTIONS" : fmt::format("{}, OPTIONS", route.method);
}

bool is_json(const Headers& headers) {
  const std::string* type = find_header(headers, "content-type");
  if (type == nullptr) return false;
  std::string_view media = std::string_view(*type).substr(0, type->find(';'));
  while (media.ends_with(' ')) media.remove_suffix(1);
  return equal_ignoring_case(media, "application/json");
}

HttpResponse unavailable(bool draining, ErrorShape shape) {
  return ApiError(503, draining ? "the server is shutting down" : "the model is being loaded; try again soon",
                  "", draining ? "shutting_down" : "loading")
      .to_response(shape);
}

/// A name of something a client chose, for messages.
std::string printable(const std::string& text) {
  constexpr size_t kLongest = 100;
  return to_valid_utf8(text.size() <= kLongest ? text : text.substr(0, kLongest) + "...");
}

}  // namespace

Service::Service(ServiceOptions options, JsonLog& log)
    : options_(std::move(options)),
      keys_(options_.api_keys),
      cors_(options_.cors_origins),
      log_(log),
      maker_(options_, log_),
      ticker_([this] { tick(); }) {}

Service::~Service() { close(); }

void Service::set_engine(Engine& engine) {
  engine_ = &engine;
  State loading = State::loading;
  state_.compare_exchange_strong(loading, State::ready);
}

void Service::count_connections(std::function<size_t()> open) { connections_ = std::move(open); }

void Service::drain() { state_ = State::draining; }

void Service::close() {
  if (!ticking_.exchange(false)) return;
  ticker_.join();
  drain();
  parsing_.close();
  std::promise<void> ended;
  answers_.post([&] {
    for (const auto& task : tasks_) task->client_left();
    tasks_.clear();
    watchers_.close();
    ended.set_value();
  });
  ended.get_future().wait();
  answers_.close();
}

void Service::tick() {
  auto next = std::chrono::steady_clock::now();
  for (int turn = 0; ticking_; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (watched_ && turn % kWatchTurns == 0) answers_.post([this] { step_watchers(); });
    if (std::chrono::steady_clock::now() < next) continue;
    next = std::chrono::steady_clock::now() + kTick;
    answers_.post([this] {
      const auto now = std::chrono::steady_clock::now();
      for (const auto& task : tasks_) task->keep_alive(now);
    });
  }
}

bool Service::accept(const HttpRequest& head, HttpResponse& response) {
  std::optional<HttpResponse> refused = refuse_head(head);
  if (!refused) return true;
  response = with_cors(*std::move(refused), head);
  return false;
}

std::optional<HttpResponse> Service::refuse_head(const HttpRequest& head) const {
  // The page itself holds no secret, and a browser has no key before it is there.
  if ((head.method == "GET" || head.method == "HEAD") && find_page_file(head.path) != nullptr)
    return std::nullopt;
  const Route* route = find_route(head.path);
  const ErrorShape shape = errors_of(head.path);
  if (head.method == "OPTIONS") {
    Headers headers = CorsPolicy::preflight_headers(head.headers);
    if (route != nullptr) headers.emplace_back("Allow", allow_of(*route));
    return HttpResponse{204, std::move(headers), ""};
  }
  if ((route == nullptr || route->needs_key) && !keys_.allow(head.headers)) {
    return ApiError(
               401,
               "this server needs an API key: send the header Authorization: Bearer KEY, or x-api-key: KEY",
               "", "invalid_api_key")
        .to_response(shape);
  }
  if (route == nullptr) {
    std::vector<std::string_view> paths;
    for (const Route& known : routes()) paths.push_back(known.path);
    return ApiError(404,
                    fmt::format("there is no {}; there are {}", printable(head.path), fmt::join(paths, ", ")),
                    "", "not_found")
        .to_response(shape);
  }
  if (head.method != route->method && !(head.method == "HEAD" && route->method == "GET")) {
    HttpResponse response =
        ApiError(405,
                 fmt::format("{} is not for {}; use {}", head.path, printable(head.method), route->method),
                 "", "method_not_allowed")
            .to_response(shape);
    response.headers.emplace_back("Allow", allow_of(*route));
    return response;
  }
  if (route->needs_model && state_ != State::ready) return unavailable(state_ == State::draining, shape);
  if (route->method == "POST") {
    const std::string* encoding = find_header(head.headers, "content-encoding");
    if (encoding != nullptr && !equal_ignoring_case(*encoding, "identity"))
      return ApiError(415, "a compressed body is not supported; send it as it is").to_response(shape);
    // Ollama's own server takes any type, as `curl -d` sends; a foreign web page, which has an origin, may
    // not.
    const bool any_type = shape == ErrorShape::ollama && find_header(head.headers, "origin") == nullptr;
    if (!any_type && !is_json(head.headers))
      return ApiError(415, "the body's type is not JSON; send the header Content-Type: application/json")
          .to_response(shape);
  }
  return std::nullopt;
}

void Service::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (const PageFile* file = find_page_file(request.path))
    return exchange->respond(page_response(*file, request));
  if (request.path == "/engine/events" && request.method == "GET") return watch(request, exchange);
  const Route* route = find_route(request.path);
  if (route->method == "GET") return exchange->respond(with_cors(answer_get(request), request));
  parsing_.post([this, request = std::make_shared<HttpRequest>(std::move(request)), exchange] {
    const auto fail = [&](const ApiError& error) {
      if (error.status() == 429) metrics_.request_refused();
      exchange->respond(with_cors(error.to_response(errors_of(request->path)), *request));
    };
    try {
      if (generation_reader(request->path) != nullptr) {
        generate(*request, exchange);
      } else {
        exchange->respond(with_cors(answer_post(*request), *request));
      }
    } catch (const ApiError& error) {
      fail(error);
    } catch (const Error& error) {
      fail(to_api_error(error));
    } catch (const std::exception& error) {
      log_.error("request_failed", Json{{"request_id", request->id}, {"error", error.what()}});
      fail(ApiError(500, "the server failed on this request; its log says why"));
    }
  });
}

HttpResponse Service::answer_get(const HttpRequest& request) const {
  if (request.path == "/health") return health();
  if (request.path == "/openapi.json") return json_response(200, openapi_document());
  const Engine* engine = engine_;
  if (request.path == "/metrics") {
    return {200,
            {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
            metrics_.text(options_.model_names.front(), engine == nullptr ? EngineStats{} : engine->stats(),
                          connections_())};
  }
  if (request.path == "/api/version") return json_response(200, ollama_version_page());
  if (request.path == "/api/tags" || request.path == "/api/ps")
    return json_response(200, ollama_models_page(*engine, options_.model_names));
  if (request.path == "/props") return json_response(200, props_page(*engine, options_.model_names));
  return models(request.path);
}

void Service::watch(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
  answers_.post([this, exchange, headers = cors_.headers(request.headers)]() mutable {
    if (!watchers_.add(exchange, headers)) {
      exchange->respond({ApiError(503, "too many watch the engine already").to_response()});
    } else {
      watched_ = true;
    }
  });
}

void Service::step_watchers() {
  if (state_ == State::draining) watchers_.close();
  watchers_.step(*engine_);
  watched_ = !watchers_.empty();
}

HttpResponse Service::health() const {
  switch (state_.load()) {
    case State::ready:
      return json_response(200, Json{{"status", "ok"}});
    case State::loading:
      return json_response(503, Json{{"status", "loading"}});
    case State::draining:
      break;
  }
  return json_response(503, Json{{"status", "draining"}});
}

HttpResponse Service::models(const std::string& path) const {
  const Engine* engine = engine_;
  constexpr std::string_view kList = "/v1/models";
  if (path == kList) {
    Json data = Json::array();
    for (const std::string& name : options_.model_names) data.push_back(model_page(engine, name));
    return json_response(200, Json{{"object", "list"}, {"data", std::move(data)}});
  }
  const std::string name = percent_decoded(path.substr(kList.size() + 1));
  try {
    check_model(name);
  } catch (const ApiError& error) {
    return error.to_response();
  }
  return json_response(200, model_page(engine, name));
}

void Service::check_model(const std::string& name) const {
  const auto& names = options_.model_names;
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  throw ApiError(
      404,
      fmt::format("the model {} is not served here; there is {}", printable(name), fmt::join(names, ", ")),
      "model", "model_not_found");
}

ServedModel Service::served_model() const {
  const ModelInfo& info = engine_.load()->info();
  return {info.context, info.embedding_size, options_.pooling ? options_.pooling : info.pooling};
}

HttpResponse Service::answer_post(const HttpRequest& request) const {
  const Json body = parse_body(request.body);
  const PromptText text = prompt_text(*engine_);
  if (request.path == "/detokenize") {
    const DetokenizeBody read = read_detokenize_body(body);
    check_model(read.model);
    return json_response(200, Json{{"prompt", text.required().decode(read.tokens, false)}});
  }
  if (request.path == "/apply-template") {
    const ApplyTemplateBody read = read_apply_template_body(body);
    check_model(read.model);
    return json_response(200, Json{{"prompt", text.render(read.messages).text}});
  }
  if (request.path == "/v1/messages/count_tokens") {
    const GenerationBody read = read_anthropic_count_body(body, served_model());
    check_model(read.model);
    return json_response(200, Json{{"input_tokens", text.encode(text.render(read.messages)).size()}});
  }
  if (request.path == "/api/show") {
    check_model(read_ollama_show_body(body));
    return json_response(200, ollama_show_page(*engine_));
  }
  const TokenizeBody read = read_tokenize_body(body);
  check_model(read.model);
  const std::vector<TokenId> ids =
      read.text ? text.encode(*read.text, read.add_special_tokens) : text.encode(text.render(read.messages));
  Json page{{"count", ids.size()}, {"max_model_len", engine_.load()->info().context}, {"tokens", ids}};
  if (read.return_token_strs) {
    Json& strings = page["token_strs"] = Json::array();
    for (const TokenId id : ids) strings.push_back(text.required().token_text(id));
  }
  return json_response(200, page);
}

void Service::generate(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
  const Json json = parse_body(request.body);
  const GenerationBody body = generation_reader(request.path)(json, served_model());
  check_model(body.model);
  Engine& engine = *engine_;
  GenerationJob job = maker_.make_job(engine, request, body);
  job.headers = cors_.headers(request.headers);
  if (body.at_once) return exchange->respond(with_cors(json_response(200, body.at_once(job.head)), request));
  std::vector<Request> requests = maker_.make_requests(engine, body, job);
  const int64_t room = int64_t{engine.info().max_batch} + options_.max_queue;
  const auto choices = static_cast<int64_t>(requests.size()) * body.settings.n;
  if (choices > room)
    throw ApiError(
        400,
        fmt::format("the request asks for {} choices, but only {} can run and wait at once", choices, room),
        "n");
  job.exchange = exchange;
  for (Request& one : requests) job.streams.push_back(engine.submit(std::move(one)));
  run(std::move(job));
}

void Service::run(GenerationJob job) {
  answers_.post([this, shared = std::make_shared<GenerationJob>(std::move(job))] {
    const std::shared_ptr<Exchange> exchange = shared->exchange;
    auto task = std::make_shared<GenerationTask>(std::move(*shared), metrics_, log_);
    tasks_.insert(task);
    const auto later = [this, weak = std::weak_ptr(task)](auto what) {
      answers_.post([this, weak, what] {
        const auto alive = weak.lock();
        if (!alive) return;
        what(*alive);
        if (alive->ended()) tasks_.erase(alive);
      });
    };
    exchange->on_disconnect([later] { later([](GenerationTask& left) { left.client_left(); }); });
    task->start();
    for (Stream& stream : task->streams())
      stream.on_ready([later] { later([](GenerationTask& ready) { ready.step(); }); });
  });
}

HttpResponse Service::refuse(int status, const std::string& sentence, const HttpRequest& head) {
  return with_cors(ApiError(status, sentence).to_response(errors_of(head.path)), head);
}

HttpResponse Service::with_cors(HttpResponse response, const HttpRequest& request) const {
  const Headers headers = cors_.headers(request.headers);
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  return response;
}

void Service::answered(const HttpRequest& request, int status, double seconds, bool complete) {
  const Route* route = find_route(request.path);
  const bool known = request.method == "GET" || request.method == "POST" || request.method == "HEAD" ||
                     request.method == "OPTIONS";
  const char* unlisted = find_page_file(request.path) != nullptr ? "page" : "other";
  metrics_.http_answered(route == nullptr ? unlisted : std::string(route->path),
                         known ? request.method : "other", status);
  const bool routine = status == 200 && (request.path == "/health" || request.path == "/metrics");
  if (routine) return;
  log_.info("request", Json{{"request_id", request.id},
                            {"client", request.client},
                            {"method", printable(request.method)},
                            {"path", printable(request.path)},
                            {"status", status},
                            {"complete", complete},
                            {"duration_ms", seconds * 1e3}});
}

}  // namespace qwench::server
