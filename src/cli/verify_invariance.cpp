#include "cli/verify_invariance.h"

#include <fmt/format.h>

#include "cli/jsonl.h"
#include "cli/terminal.h"
#include "verify/invariance.h"

namespace qwench::cli {
namespace {

std::string as_table(const InvarianceReport& report) {
  std::string table = fmt::format("{:>5} {:>8} {:>11} {:>7} {:>7} {:>6} {:>6} {:>7} {:>10} {:>9} {:>9}\n",
                                  "round", "requests", "completions", "tokens", "threads", "batch", "chunk",
                                  "guesses", "cache hits", "preempted", "cancelled");
  for (size_t i = 0; i < report.rounds.size(); ++i) {
    const InvarianceRound& round = report.rounds[i];
    table += fmt::format("{:>5} {:>8} {:>11} {:>7} {:>7} {:>6} {:>6} {:>7} {:>10} {:>9} {:>9}", i + 1,
                         round.requests, round.completions, round.tokens, round.threads, round.max_batch,
                         round.max_batch_tokens, round.draft_tokens, round.stats.prefix_hits,
                         round.stats.preemptions, round.cancelled);
    table += round.different == 0 ? "\n" : fmt::format("  {} differ\n", round.different);
  }
  return table + "verdict: " + printable(report.verdict()) + "\n";
}

Json as_json(const InvarianceReport& report, const std::string& model, uint64_t seed) {
  Json rounds = Json::array();
  for (const InvarianceRound& round : report.rounds) {
    Json row{{"requests", round.requests},
             {"completions", round.completions},
             {"tokens", round.tokens},
             {"threads", round.threads},
             {"max_batch", round.max_batch},
             {"max_batch_tokens", round.max_batch_tokens},
             {"draft_tokens", round.draft_tokens},
             {"draft_hits", round.stats.draft_hits},
             {"prefix_hits", round.stats.prefix_hits},
             {"preemptions", round.stats.preemptions},
             {"cancelled", round.cancelled},
             {"different", round.different}};
    if (!round.first_difference.empty()) row["first_difference"] = round.first_difference;
    rounds.push_back(std::move(row));
  }
  return {{"model", model},
          {"seed", seed},
          {"ok", report.ok()},
          {"verdict", report.verdict()},
          {"rounds", std::move(rounds)}};
}

}  // namespace

int verify_invariance(const ModelFlags& model, uint64_t seed, int rounds, bool json) {
  InvarianceOptions options;
  options.dtype = model.options().dtype;
  options.packed_bf16 = model.options().packed_bf16;
  options.kv_dtype = model.options().kv_dtype;
  options.threads = model.options().threads;
  options.device = model.options().device;
  options.gpu_layers = model.options().gpu_layers;
  options.device_memory = model.options().device_memory;
  options.seed = seed;
  options.rounds = rounds;
  StatusLine status;
  options.progress = [&](const std::string& what) { status.update("checking: " + what); };
  const InvarianceReport report = check_invariance(model.path(), options);
  status.clear();
  print(json ? to_line(as_json(report, model.path().filename().string(), seed)) + "\n" : as_table(report));
  return report.ok() ? 0 : 1;
}

}  // namespace qwench::cli
