#include "qwench/engine.h"

#include <atomic>
#include <utility>

#include "engine/direct_passes.h"
#include "engine/engine_loop.h"
#include "engine/generate_call.h"
#include "engine/loaded_model.h"
#include "engine/request_check.h"
#include "engine/stream_state.h"

namespace qwench {

static_assert(kKvBlockTokens == kBlockSize);

class Engine::Impl {
 public:
  Impl(const std::filesystem::path& path, const EngineOptions& options)
      : model_(path, options), loop_(model_, options) {}

  const LoadedModel& model() const { return model_; }
  EngineLoop& loop() { return loop_; }

  Stream submit(Request request) {
    check(request);
    auto state = std::make_shared<StreamState>(++streams_, request.n, model_.text().tokenizer() != nullptr);
    std::vector<std::unique_ptr<Job>> jobs;
    jobs.push_back(job_of(std::move(request), state));
    loop_.submit(std::move(jobs), true);
    return Stream(std::move(state));
  }

  std::vector<Result> generate(std::span<const Request> requests,
                               const std::function<void(const Delta&)>& on_delta,
                               const std::stop_token& stop) {
    const auto call = std::make_shared<GenerateCall>(requests, on_delta);
    std::vector<std::unique_ptr<Job>> jobs;
    for (size_t i = 0; i < requests.size(); ++i) {
      try {
        check(requests[i]);
        jobs.push_back(job_of(requests[i], call->sink(i)));
        jobs.back()->stop = stop;
      } catch (const Error& error) {
        call->refuse(i, error.what());
      }
    }
    loop_.submit(std::move(jobs), false);
    return call->wait();
  }

  Score score(std::span<const TokenId> ids, int top) {
    Score score;
    loop_.run_alone([&](BlockPool& blocks) { score = score_directly(model_, blocks, ids, top); });
    return score;
  }

  void check(const Request& request) const { check_request(request, model_.info(), model_.generation()); }

 private:
  std::unique_ptr<Job> job_of(Request request, std::shared_ptr<CompletionSink> sink) const {
    const uint64_t salt = model_.prefix_salt(static_cast<int>(request.ids.size()));
    return std::make_unique<Job>(std::move(request), std::move(sink), model_.generation(), salt);
  }

  LoadedModel model_;
  EngineLoop loop_;
  std::atomic<uint64_t> streams_{0};
};

std::unique_ptr<Engine> Engine::load(const std::filesystem::path& model, const EngineOptions& options) {
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(model, options)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

const ModelInfo& Engine::info() const { return impl_->model().info(); }
const SamplingOptions& Engine::generation_defaults() const { return impl_->model().generation().defaults; }
std::vector<TokenId> Engine::stop_ids() const { return impl_->model().generation().stop_ids; }
std::shared_ptr<const Tokenizer> Engine::tokenizer() const { return impl_->model().text().tokenizer(); }
const ChatTemplates* Engine::chat_templates() const { return impl_->model().text().templates(); }
std::vector<TokenId> Engine::encode(std::string_view text) const {
  return impl_->model().text().encode(text);
}
std::vector<TokenId> Engine::encode_chat(const ChatTemplateInput& input,
                                         const std::optional<std::string>& template_name) const {
  return impl_->model().text().encode_chat(input, template_name);
}
void Engine::check(const Request& request) const { impl_->check(request); }
Stream Engine::submit(Request request) { return impl_->submit(std::move(request)); }
std::vector<Result> Engine::generate(std::span<const Request> requests,
                                     const std::function<void(const Delta&)>& on_delta,
                                     const std::stop_token& stop) {
  return impl_->generate(requests, on_delta, stop);
}
Score Engine::score(std::span<const TokenId> ids, int top) { return impl_->score(ids, top); }
EngineStats Engine::stats() const { return impl_->loop().stats(); }
EngineActivity Engine::activity() const { return impl_->loop().activity(); }
bool Engine::drain(std::optional<std::chrono::nanoseconds> timeout) { return impl_->loop().drain(timeout); }
void Engine::stop() { impl_->loop().stop(); }

}  // namespace qwench
