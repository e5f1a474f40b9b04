#include "engine/generate_call.h"

#include <algorithm>
#include <utility>

namespace qwench {

class GenerateCall::Sink final : public CompletionSink {
 public:
  Sink(std::shared_ptr<GenerateCall> call, size_t request) : call_(std::move(call)), request_(request) {}

  void token(int index, TokenId id, const std::string& text, const TokenLogprob*) override {
    call_->show({request_, text, id, index});
  }
  void end(int index, const std::string& tail, Result result) override {
    if (!tail.empty()) call_->show({request_, tail, -1, index});
    const std::lock_guard lock(call_->mutex_);
    call_->results_[call_->first_result_[request_] + static_cast<size_t>(index)] = std::move(result);
    --call_->unfinished_;
  }
  void flush() override {
    const std::lock_guard lock(call_->mutex_);
    if (call_->unfinished_ > 0) return;
    call_->over_ = true;
    call_->changed_.notify_all();
  }
  bool cancelled() const override { return call_->error_ != nullptr; }

 private:
  const std::shared_ptr<GenerateCall> call_;
  const size_t request_;
};

GenerateCall::GenerateCall(std::span<const Request> requests,
                           const std::function<void(const Delta&)>& on_delta)
    : on_delta_(on_delta) {
  first_result_.push_back(0);
  for (const Request& request : requests) {
    const int results = std::clamp(request.n, 1, kMaxCompletions);
    first_result_.push_back(first_result_.back() + static_cast<size_t>(results));
  }
  unfinished_ = first_result_.back();
  results_.resize(unfinished_);
  over_ = unfinished_ == 0;
}

std::shared_ptr<CompletionSink> GenerateCall::sink(size_t request) {
  return std::make_shared<Sink>(shared_from_this(), request);
}

void GenerateCall::refuse(size_t request, const std::string& sentence) {
  // One result stands for all of them.
  const std::lock_guard lock(mutex_);
  const size_t first = first_result_[request];
  const size_t rest = first_result_[request + 1] - first - 1;
  Result& result = results_[first];
  result.finish_reason = FinishReason::error;
  result.error = sentence;
  unfinished_ -= rest + 1;
  over_ = unfinished_ == 0;
  results_.resize(results_.size() - rest);
  for (size_t i = request + 1; i < first_result_.size(); ++i) first_result_[i] -= rest;
}

void GenerateCall::show(const Delta& delta) {
  if (!on_delta_ || error_) return;
  try {
    on_delta_(delta);
  } catch (...) {
    error_ = std::current_exception();
  }
}

std::vector<Result> GenerateCall::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_; });
  if (error_) std::rethrow_exception(error_);
  return std::move(results_);
}

}  // namespace qwench
