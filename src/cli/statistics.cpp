#include "cli/statistics.h"

#include <fmt/format.h>

#include "cli/model_flags.h"
#include "core/memory.h"

namespace qwench::cli {
namespace {

std::string rate(double tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f} tok/s", tokens / seconds) : "- tok/s";
}

std::string memory() {
  return fmt::format("peak memory {}", short_bytes(static_cast<double>(peak_memory())));
}

}  // namespace

std::string statistics(const Result& result) {
  const Timings& t = result.timings;
  // The first token comes out of the prefill; the others are decoded.
  const int decoded = result.usage.completion_tokens - 1;
  std::string line =
      fmt::format("qwench: {}, first token after {:.2f} s, prefill {} | {}",
                  plural(result.usage.prompt_tokens, "prompt token"), t.first_token_seconds,
                  rate(result.usage.prompt_tokens - result.usage.cached_tokens, t.prefill_seconds),
                  plural(result.usage.completion_tokens, "token"));
  if (decoded > 0) line += fmt::format(" at {}", rate(decoded, t.decode_seconds));
  return fmt::format("{} | {}", line, memory());
}

std::string cut_note(const Result& result, const Request& request, const ModelInfo& info) {
  if (result.finish_reason != FinishReason::length) return "";
  const int used = result.usage.prompt_tokens + result.usage.completion_tokens;
  if (used >= info.context) {
    return fmt::format(" | cut: the context of {} is full{}", info.context,
                       info.context < info.max_context ? " (-c)" : "");
  }
  if (request.stop.max_tokens >= 0) return fmt::format(" | cut at -n {}", request.stop.max_tokens);
  return fmt::format(" | cut at the {} that generation_config.json allows (-n)",
                     plural(result.usage.completion_tokens, "token"));
}

std::string batch_statistics(std::span<const Result> results, double seconds) {
  int64_t prompt = 0;
  int64_t completion = 0;
  for (const Result& result : results) {
    prompt += result.usage.prompt_tokens;
    completion += result.usage.completion_tokens;
  }
  return fmt::format("qwench: {}, {} in, {} out in {:.2f} s: {} | {}",
                     plural(static_cast<int64_t>(results.size()), "request"), plural(prompt, "token"),
                     plural(completion, "token"), seconds, rate(static_cast<double>(completion), seconds),
                     memory());
}

}  // namespace qwench::cli
