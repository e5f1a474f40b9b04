#pragma once

#include <string>

#include "qwench/request.h"

namespace qwench {

/// Where the completions of one request go as they appear. Called by the engine's thread.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;

  /// The next token of completion `index` and the text it releases; `logprob` is null where it is not asked
  /// for.
  virtual void token(int index, TokenId id, const std::string& text, const TokenLogprob* logprob) = 0;
  /// The end of completion `index`, with the text that it still releases.
  virtual void end(int index, const std::string& tail, Result result) = 0;
  /// The pass is over: the moment to tell others of what came.
  virtual void flush() = 0;

  /// Nobody wants the rest. May be called from any thread.
  virtual bool cancelled() const = 0;
};

}  // namespace qwench
