#include "server/metrics.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cstdio>

namespace qwench::server {
namespace {

void append_head(std::string& out, const std::string& name, const char* type, const std::string& help) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

/// Bytes in memory, from /proc; 0 where there is none.
uint64_t resident_bytes() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void Histogram::observe(double value, int64_t times) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(bound - bounds_.begin())] += times;
  count_ += times;
  sum_ += value * static_cast<double>(times);
}

void Histogram::append_text(std::string& out, const std::string& name, const std::string& labels,
                            const std::string& help) const {
  append_head(out, name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bounds_[i], below);
  }
  out += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, count_);
  out += fmt::format("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels, sum_, name, labels, count_);
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_seconds_.observe(seconds);
}

void Metrics::next_tokens(double seconds, int tokens) {
  if (tokens <= 0) return;
  const std::lock_guard lock(mutex_);
  inter_token_seconds_.observe(seconds / tokens, tokens);
}

void Metrics::request_ended(const RequestRecord& record) {
  const std::lock_guard lock(mutex_);
  bool whole = true;
  for (const std::string& reason : record.finish_reasons) {
    ++finished_[reason];
    whole = whole && (reason == "stop" || reason == "length");
  }
  if (!whole) return;
  request_seconds_.observe(record.seconds);
  queue_seconds_.observe(record.timings.queue_seconds);
  prefill_seconds_.observe(record.timings.prefill_seconds);
  decode_seconds_.observe(record.timings.decode_seconds);
  prompt_tokens_.observe(record.usage.prompt_tokens);
  generation_tokens_.observe(record.usage.completion_tokens);
  params_n_.observe(record.n);
  if (record.max_tokens >= 0) params_max_tokens_.observe(record.max_tokens);
}

void Metrics::http_answered(const std::string& route, const std::string& method, int status) {
  const std::lock_guard lock(mutex_);
  ++http_[{route, method, status}];
}

void Metrics::request_refused() {
  const std::lock_guard lock(mutex_);
  ++refused_;
}

std::string Metrics::text(const std::string& model, const EngineStats& engine, size_t connections) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  const std::string labels = fmt::format("model_name=\"{}\"", escaped(model));
  const auto add = [&](const char* type, const std::string& name, auto value, const std::string& help) {
    append_head(out, name, type, help);
    out += fmt::format("{}{{{}}} {}\n", name, labels, value);
  };
  add("gauge", "qwench:num_requests_running", engine.running, "Choices in the batch.");
  add("gauge", "qwench:num_requests_waiting", engine.waiting, "Choices in the queue.");
  const double usage =
      engine.kv_blocks_total > 0 ? static_cast<double>(engine.kv_blocks_used) / engine.kv_blocks_total : 0.0;
  add("gauge", "qwench:kv_cache_usage_perc", usage,
      "Share of the KV cache's blocks that requests hold, 0 to 1.");
  add("gauge", "qwench:kv_cache_blocks", engine.kv_blocks_total, "Blocks of the KV cache.");
  add("gauge", "qwench:kv_cache_blocks_cached", engine.kv_blocks_cached, "Blocks kept for prompts to come.");
  add("counter", "qwench:prefix_cache_queries_total", engine.prefix_queries,
      "Prompt tokens looked up in the prefix cache.");
  add("counter", "qwench:prefix_cache_hits_total", engine.prefix_hits, "Those that were found.");
  add("counter", "qwench:num_preemptions_total", engine.preemptions, "Choices that gave their blocks back.");
  add("counter", "qwench:prompt_tokens_total", engine.prompt_tokens, "Tokens of prompts.");
  add("counter", "qwench:generation_tokens_total", engine.generation_tokens, "Tokens of answers.");
  add("counter", "qwench:requests_refused_total", refused_, "Requests answered 429: the queue was full.");
  append_head(out, "qwench:request_success_total", "counter", "Choices that ended, by why.");
  for (const auto& [reason, count] : finished_)
    out +=
        fmt::format("qwench:request_success_total{{finished_reason=\"{}\",{}}} {}\n", reason, labels, count);
  first_token_seconds_.append_text(out, "qwench:time_to_first_token_seconds", labels,
                                   "From a request to its first token.");
  inter_token_seconds_.append_text(out, "qwench:inter_token_latency_seconds", labels,
                                   "From one token to the next.");
  request_seconds_.append_text(out, "qwench:e2e_request_latency_seconds", labels,
                               "From a request to the end of its answer.");
  queue_seconds_.append_text(out, "qwench:request_queue_time_seconds", labels, "In the queue.");
  prefill_seconds_.append_text(out, "qwench:request_prefill_time_seconds", labels,
                               "From the queue to the first token.");
  decode_seconds_.append_text(out, "qwench:request_decode_time_seconds", labels,
                              "From the first token to the last.");
  prompt_tokens_.append_text(out, "qwench:request_prompt_tokens", labels, "Tokens of a request's prompts.");
  generation_tokens_.append_text(out, "qwench:request_generation_tokens", labels,
                                 "Tokens of a request's answers.");
  params_n_.append_text(out, "qwench:request_params_n", labels, "n of requests.");
  params_max_tokens_.append_text(out, "qwench:request_params_max_tokens", labels,
                                 "max_tokens of requests that have it.");
  add("gauge", "qwench:http_connections", connections, "Connections that are open.");
  append_head(out, "qwench:http_requests_total", "counter", "HTTP requests, by route and status.");
  for (const auto& [key, count] : http_) {
    out += fmt::format("qwench:http_requests_total{{handler=\"{}\",method=\"{}\",status=\"{}\"}} {}\n",
                       escaped(std::get<0>(key)), escaped(std::get<1>(key)), std::get<2>(key), count);
  }
  append_head(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.");
  out += fmt::format("process_resident_memory_bytes {}\n", resident_bytes());
  return out;
}

}  // namespace qwench::server
