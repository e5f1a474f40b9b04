#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "qwench/request.h"

namespace qwench {

class StreamState;

/// A piece of a completion as it appears: one or more tokens with the text they release. Tokens whose text is
/// held back (half a character, what may become a stop string) come with the piece that lets it out or with
/// the last one. Joined over a completion, the pieces are its Result's text, ids and log-probabilities.
struct StreamDelta {
  int index = 0;  ///< which of the request's n completions
  std::string text = {};
  std::vector<TokenId> ids = {};
  std::vector<TokenLogprob> logprobs = {};         ///< [ids], where asked for
  std::optional<FinishReason> finish_reason = {};  ///< in the completion's last piece
  std::optional<std::string> stop_string = {};     ///< that ended the text, in the last piece
};

/// The answer to one submitted request. For one thread at a time, except that cancel() may be called from
/// any; different streams are independent. It may outlive its engine.
///
///     for (const StreamDelta& delta : stream) std::cout << delta.text << std::flush;
class Stream {
 public:
  class Iterator;

  explicit Stream(std::shared_ptr<StreamState> state);
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept;
  /// Cancels what has not ended.
  ~Stream();

  uint64_t id() const;  ///< 1 for an engine's first request, ascending
  int completions() const;

  /// Waits for the next piece; empty at the end of all completions.
  std::optional<StreamDelta> next();
  /// The same, for at most `timeout`, which may be 0; empty also where nothing came (finished() tells).
  std::optional<StreamDelta> next(std::chrono::nanoseconds timeout);
  /// All completions have ended and every piece was taken.
  bool finished() const;

  /// Calls `notify` whenever pieces (or the end) lie ready that were not announced before: once, until next()
  /// has found nothing more to take; at once where something lies ready now. It is called from the engine's
  /// thread, or from this one, must be quick, must not throw, and may call next(0) and cancel(). Once
  /// on_ready({}) or the destructor returns it is not running and is not called again; so it must not wait
  /// for a lock that is held while either is called.
  void on_ready(std::function<void()> notify);

  /// Ends all completions with what they have at the engine's next pass; the pieces still come.
  void cancel();

  /// Waits for the end, drops the pieces not taken, and gives a completion's result. To be called once for
  /// each index.
  Result result(int index = 0);

  Iterator begin();
  static std::default_sentinel_t end() { return std::default_sentinel; }

 private:
  std::shared_ptr<StreamState> state_;
};

/// An input iterator over what next() gives.
class Stream::Iterator {
 public:
  using value_type = StreamDelta;
  using difference_type = std::ptrdiff_t;

  explicit Iterator(Stream& stream) : stream_(&stream), delta_(stream.next()) {}
  const StreamDelta& operator*() const { return *delta_; }
  const StreamDelta* operator->() const { return &*delta_; }
  Iterator& operator++() {
    delta_ = stream_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !delta_.has_value(); }

 private:
  Stream* stream_;
  std::optional<StreamDelta> delta_;
};

inline Stream::Iterator Stream::begin() { return Iterator(*this); }

}  // namespace qwench
