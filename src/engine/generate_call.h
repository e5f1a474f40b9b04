#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/completion_sink.h"
#include "qwench/engine.h"

namespace qwench {

/// One call of Engine::generate: gathers the results of its requests, and passes what appears on to the
/// caller's function while the caller waits.
class GenerateCall : public std::enable_shared_from_this<GenerateCall> {
 public:
  /// Both references must live until wait() returns.
  GenerateCall(std::span<const Request> requests, const std::function<void(const Delta&)>& on_delta);

  std::shared_ptr<CompletionSink> sink(size_t request);
  void refuse(size_t request, const std::string& sentence);
  /// When all have ended. Throws what the caller's function threw.
  std::vector<Result> wait();

 private:
  class Sink;
  void show(const Delta& delta);

  const std::function<void(const Delta&)>& on_delta_;
  std::vector<size_t> first_result_;  // [requests + 1]

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result> results_;
  size_t unfinished_;
  bool over_;                 // nothing is unfinished, and the engine has counted it
  std::exception_ptr error_;  // written by the engine's thread
};

}  // namespace qwench
