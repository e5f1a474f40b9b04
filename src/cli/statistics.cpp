#include "cli/statistics.h"

#include <fmt/format.h>

#include "cli/model_flags.h"
#include "core/memory.h"

namespace qwench::cli {
namespace {

std::string plural(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

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
  std::string line = fmt::format("qwench: {}, first token after {:.2f} s, prefill {} | {}",
                                 plural(result.usage.prompt_tokens, "prompt token"), t.prefill_seconds,
                                 rate(result.usage.prompt_tokens, t.prefill_seconds),
                                 plural(result.usage.completion_tokens, "token"));
  if (decoded > 0) line += fmt::format(" at {}", rate(decoded, t.decode_seconds));
  return fmt::format("{} | {}", line, memory());
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
