#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "qwench/engine.h"
#include "server/answer_format.h"
#include "server/api_error.h"
#include "server/exchange.h"
#include "server/json_log.h"
#include "server/metrics.h"

namespace qwench::server {

/// What a task is made of: a request of the API whose prompts the engine has taken.
struct GenerationJob {
  std::string request_id;
  AnswerHead head;
  AnswerMaker make_answer;
  Request settings;                    ///< as the request has them, for metrics
  std::vector<PromptChoices> prompts;  ///< one for each stream
  std::vector<Stream> streams;
  std::shared_ptr<Exchange> exchange;
  Headers headers;  ///< of the answer
  std::chrono::steady_clock::time_point arrival;
  double timeout_seconds = 0;  ///< for the sentence that says it passed
};

/// One request of the API from its submission to the last byte of its answer. All functions are for one
/// thread. It ends by itself: with the engine's last piece, an error, or the client's leaving.
class GenerationTask {
 public:
  GenerationTask(GenerationJob job, Metrics& metrics, JsonLog& log);

  void start();  ///< of a stream: its first events
  /// Takes what the engine has ready.
  void step();
  /// A comment, where a stream has been silent for long: what is between keeps a silent connection no longer.
  void keep_alive(std::chrono::steady_clock::time_point now);
  void client_left();
  bool ended() const { return ended_; }
  std::vector<Stream>& streams() { return job_.streams; }

 private:
  using Clock = std::chrono::steady_clock;

  void take(size_t prompt, const StreamDelta& delta, std::string& events);
  void measure(size_t choice, const StreamDelta& delta);
  void complete(std::string events);
  void fail(const ApiError& error);
  void end(const char* unfinished_reason);
  AnswerTotals collect_totals();
  void write(std::string events);

  GenerationJob job_;
  Metrics& metrics_;
  JsonLog& log_;
  const std::unique_ptr<AnswerFormat> answer_;
  const bool holds_;  // log-probabilities of the prompt come with the results, but go before all else
  std::vector<std::pair<size_t, StreamDelta>> held_;
  std::vector<Clock::time_point> last_token_;  // [choices]
  std::vector<std::string> finish_reasons_;    // [choices]; empty while unfinished
  bool first_token_seen_ = false;
  int tokens_ = 0;
  std::optional<AnswerTotals> totals_;  // once the answer is whole
  Clock::time_point last_write_;
  bool ended_ = false;
};

}  // namespace qwench::server
