#include "qwench/stream.h"

#include <fmt/format.h>

#include <utility>

#include "engine/stream_state.h"
#include "qwench/error.h"

namespace qwench {

StreamState::StreamState(uint64_t id, int completions, bool has_text)
    : id_(id),
      has_text_(has_text),
      partial_(static_cast<size_t>(completions)),
      results_(static_cast<size_t>(completions)) {
  for (int i = 0; i < completions; ++i) partial_[static_cast<size_t>(i)].index = i;
}

void StreamState::token(int index, TokenId id, const std::string& text, const TokenLogprob* logprob) {
  const std::lock_guard lock(mutex_);
  StreamDelta& partial = partial_[static_cast<size_t>(index)];
  partial.ids.push_back(id);
  if (logprob != nullptr) partial.logprobs.push_back(*logprob);
  partial.text += text;
  if (has_text_ && partial.text.empty()) return;
  ready_.push_back(std::exchange(partial, StreamDelta{.index = index}));
}

void StreamState::end(int index, const std::string& tail, Result result) {
  const std::lock_guard lock(mutex_);
  StreamDelta& partial = partial_[static_cast<size_t>(index)];
  partial.text += tail;
  partial.finish_reason = result.finish_reason;
  partial.stop_string = result.stop_string;
  ready_.push_back(std::move(partial));
  results_[static_cast<size_t>(index)] = std::move(result);
  ++ended_;
}

void StreamState::flush() {
  {
    const std::lock_guard lock(mutex_);
    if (ready_.empty() && !all_ended()) return;
    changed_.notify_all();
    if (std::exchange(announced_, true)) return;
  }
  const std::lock_guard lock(notify_mutex_);
  // Our own share of it: a function may replace itself.
  if (const auto notify = notify_) (*notify)();
}

std::optional<StreamDelta> StreamState::take() {
  if (ready_.empty()) {
    announced_ = false;
    return std::nullopt;
  }
  std::optional<StreamDelta> delta(std::move(ready_.front()));
  ready_.pop_front();
  return delta;
}

std::optional<StreamDelta> StreamState::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || all_ended(); });
  return take();
}

std::optional<StreamDelta> StreamState::next(std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  if (timeout.count() > 0 && ready_.empty())
    changed_.wait_for(lock, timeout, [&] { return !ready_.empty() || all_ended(); });
  return take();
}

bool StreamState::finished() const {
  const std::lock_guard lock(mutex_);
  return all_ended() && ready_.empty();
}

void StreamState::on_ready(std::function<void()> notify) {
  const std::lock_guard lock(notify_mutex_);
  notify_.reset();
  if (!notify) return;
  const auto shared = notify_ = std::make_shared<const std::function<void()>>(std::move(notify));
  {
    const std::lock_guard state(mutex_);
    announced_ = !ready_.empty() || all_ended();
    if (!announced_) return;
  }
  (*shared)();
}

Result StreamState::result(int index) {
  std::unique_lock lock(mutex_);
  if (index < 0 || index >= static_cast<int>(results_.size())) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("there is no completion {}: the request asked for {}", index, results_.size()));
  }
  changed_.wait(lock, [&] { return all_ended(); });
  ready_.clear();
  return std::move(results_[static_cast<size_t>(index)]);
}

Stream::Stream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    const Stream old(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

Stream::~Stream() {
  if (!state_) return;
  state_->on_ready({});
  state_->cancel();
}

uint64_t Stream::id() const { return state_->id(); }
int Stream::completions() const { return state_->completions(); }
std::optional<StreamDelta> Stream::next() { return state_->next(); }
std::optional<StreamDelta> Stream::next(std::chrono::nanoseconds timeout) { return state_->next(timeout); }
bool Stream::finished() const { return state_->finished(); }
void Stream::on_ready(std::function<void()> notify) { state_->on_ready(std::move(notify)); }
void Stream::cancel() { state_->cancel(); }
Result Stream::result(int index) { return state_->result(index); }

}  // namespace qwench
