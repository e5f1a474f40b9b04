#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "qwench/engine.h"

namespace qwench::server {

/// Counts of values by upper bound, as Prometheus has them.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value, int64_t times = 1);
  void append_text(std::string& out, const std::string& name, const std::string& labels,
                   const std::string& help) const;

 private:
  std::vector<double> bounds_;   // ascending
  std::vector<int64_t> counts_;  // [bounds + 1]: the last has no upper bound
  int64_t count_ = 0;
  double sum_ = 0;
};

/// What is known of a request of the API when it has ended.
struct RequestRecord {
  std::vector<std::string> finish_reasons;  ///< of its choices: stop, length, abort, error, deadline
  Usage usage;
  Timings timings;
  double seconds = 0;
  int n = 1;
  int max_tokens = -1;
};

/// What has happened since the server began, in Prometheus's text format; names and labels are those that
/// vLLM's dashboards know, under qwench: instead of vllm:. Thread-safe.
class Metrics {
 public:
  void first_token(double seconds);              ///< since the request came
  void next_tokens(double seconds, int tokens);  ///< since the ones before
  void request_ended(const RequestRecord& record);
  void http_answered(const std::string& route, const std::string& method, int status);
  void request_refused();  ///< the queue was full

  /// https://prometheus.io/docs/instrumenting/exposition_formats/
  std::string text(const std::string& model, const EngineStats& engine, size_t connections) const;

 private:
  mutable std::mutex mutex_;
  Histogram first_token_seconds_{{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                  1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560}};
  Histogram inter_token_seconds_{
      {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}};
  static inline const std::vector<double> kLatency = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                                      30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
  static inline const std::vector<double> kTokens = {1,   2,    5,    10,   20,    50,    100,   200,
                                                     500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
  Histogram request_seconds_{kLatency};
  Histogram queue_seconds_{kLatency};
  Histogram prefill_seconds_{kLatency};
  Histogram decode_seconds_{kLatency};
  Histogram prompt_tokens_{kTokens};
  Histogram generation_tokens_{kTokens};
  Histogram params_n_{{1, 2, 5, 10, 20}};
  Histogram params_max_tokens_{kTokens};
  std::map<std::string, int64_t> finished_{
      {"stop", 0}, {"length", 0}, {"abort", 0}, {"error", 0}, {"deadline", 0}};
  std::map<std::tuple<std::string, std::string, int>, int64_t> http_;  // route, method, status
  int64_t refused_ = 0;
};

}  // namespace qwench::server
