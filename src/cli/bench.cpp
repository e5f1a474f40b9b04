#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/bandwidth.h"
#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "core/memory.h"
#include "qwench/engine.h"

namespace qwench::cli {
namespace {

struct BenchOptions {
  int prompt = 512;
  int decode = 64;
  int depth = 128;
  int repeat = 3;
  std::vector<int> batch = {1, 50};
  bool json = false;
};

/// Which of them the command line has.
struct Given {
  bool prompt = false;
  bool decode = false;
  bool depth = false;
};

struct BenchRow {
  std::string test;
  double tokens_per_second;
  double bytes_per_second;  // of weights and cache read
};

BenchRow measure_prefill(Engine& engine, const BenchOptions& options) {
  double best = 0;
  for (int i = 0; i < options.repeat; ++i) {
    const double seconds = engine.time_forward(1, options.prompt, 0);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return {fmt::format("prefill {}", options.prompt), options.prompt / best, 0};
}

BenchRow measure_decode(Engine& engine, const BenchOptions& options, int sequences) {
  engine.time_forward(sequences, 1, options.depth);
  // The best of several averages: a pause of the machine should not count, a slow token should.
  double best = 0;
  for (int i = 0; i < options.repeat; ++i) {
    double total = 0;
    for (int token = 0; token < options.decode; ++token)
      total += engine.time_forward(sequences, 1, options.depth + token);
    const double seconds = total / options.decode;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  const ModelInfo& info = engine.info();
  const double positions = sequences * (options.depth + (options.decode - 1) / 2.0);
  const double bytes =
      static_cast<double>(info.weight_bytes) + static_cast<double>(info.kv_bytes_per_token) * positions;
  return {fmt::format("decode x{}", sequences), sequences / best, bytes / best};
}

void check(const BenchOptions& options) {
  const auto at_least = [](const char* flag, int value, int low) {
    if (value < low) throw UsageError(fmt::format("{} {}: expected {} or more", flag, value, low));
  };
  at_least("-p", options.prompt, 1);
  at_least("-n", options.decode, 1);
  at_least("--depth", options.depth, 0);
  at_least("--repeat", options.repeat, 1);
  for (const int sequences : options.batch) at_least("--batch", sequences, 1);
}

/// The defaults are cut to what the context holds, with a line on stderr; what was asked for is not.
void fit(BenchOptions& options, const Given& given, int context) {
  if (options.prompt > context) {
    if (given.prompt)
      throw UsageError(fmt::format("-p {}: the context holds {} positions", options.prompt, context));
    options.prompt = context;
    std::fputs(fmt::format("qwench: the context holds {} positions, so -p is {}\n", context, context).c_str(),
               stderr);
  }
  if (static_cast<int64_t>(options.depth) + options.decode <= context) return;
  if (!given.decode)
    options.decode = std::min(options.decode, given.depth ? context - options.depth : (context + 1) / 2);
  if (!given.depth) options.depth = std::min(options.depth, context - options.decode);
  if (options.decode < 1 || options.depth < 0 ||
      static_cast<int64_t>(options.depth) + options.decode > context) {
    throw UsageError(fmt::format("--depth {} and -n {}: the context holds {} positions", options.depth,
                                 options.decode, context));
  }
  std::fputs(fmt::format("qwench: the context holds {} positions, so --depth is {} and -n {}\n", context,
                         options.depth, options.decode)
                 .c_str(),
             stderr);
}

std::string as_table(const ModelInfo& info, const std::vector<BenchRow>& rows, double bandwidth,
                     uint64_t peak) {
  std::string table;
  for (const BenchRow& row : rows) {
    table += fmt::format("{:<14} {:>10.1f} tok/s", row.test, row.tokens_per_second);
    if (row.bytes_per_second > 0) {
      table += fmt::format("  {:>7.2f} GB/s  {:>5.1f} % of bandwidth", row.bytes_per_second / 1e9,
                           100 * row.bytes_per_second / bandwidth);
    }
    table += '\n';
  }
  table += fmt::format("{:<14} {:>10} per token\n", "weights read",
                       short_bytes(static_cast<double>(info.weight_bytes)));
  table += fmt::format("{:<14} {:>10.2f} GB/s read by {} thread{}\n", "bandwidth", bandwidth / 1e9,
                       info.threads, info.threads == 1 ? "" : "s");
  return table + fmt::format("{:<14} {:>10}\n", "peak memory", short_bytes(static_cast<double>(peak)));
}

Json as_json(const ModelInfo& info, const std::vector<BenchRow>& rows, double bandwidth, uint64_t peak) {
  Json tests = Json::array();
  for (const BenchRow& row : rows) {
    Json test{{"test", row.test}, {"tokens_per_second", row.tokens_per_second}};
    if (row.bytes_per_second > 0) {
      test["bytes_per_second"] = row.bytes_per_second;
      test["share_of_bandwidth"] = row.bytes_per_second / bandwidth;
    }
    tests.push_back(std::move(test));
  }
  return {{"model", info.name},          {"weight_type", info.weight_type},   {"threads", info.threads},
          {"read_bandwidth", bandwidth}, {"weight_bytes", info.weight_bytes}, {"tests", std::move(tests)},
          {"peak_memory", peak}};
}

}  // namespace

int bench_command(const Arguments& arguments) {
  CommandLine line(
      "bench",
      "Measures prefill and decode speed, and the share of the memory bandwidth that decoding reaches.",
      "  qwench bench ~/models/Qwen3-0.6B\n"
      "  qwench bench model.gguf -p 1024 -n 128 --batch 1,8,50\n"
      "  qwench bench model.gguf --json\n");
  ModelFlags model;
  BenchOptions options;
  model.add_to(line, ModelFlags::Default::none, true);
  const Option prompt = line.add_option("-p,--prompt-tokens", options.prompt, "tokens of the prefill test")
                            .value_name("N")
                            .whole_number()
                            .show_default();
  const Option decode = line.add_option("-n,--decode-tokens", options.decode, "tokens of the decode test")
                            .value_name("N")
                            .whole_number()
                            .show_default();
  const Option depth =
      line.add_option("--depth", options.depth, "positions that a sequence holds before it decodes")
          .value_name("N")
          .whole_number()
          .show_default();
  line.add_option("--batch", options.batch, "sequences that decode at once, one test each")
      .value_name("N,...")
      .separated_by(',')
      .show_default();
  line.add_option("--repeat", options.repeat, "the best of so many is reported")
      .value_name("N")
      .whole_number()
      .show_default();
  line.add_flag("--json", options.json, "one JSON object on stdout");
  if (!line.parse(arguments)) return 0;
  check(options);
  model.finish();

  const std::unique_ptr<Engine> engine = model.load();
  const ModelInfo& info = engine->info();
  std::fputs((banner(info) + "\n").c_str(), stderr);
  fit(options, {prompt.given(), decode.given(), depth.given()}, info.context);
  std::vector<BenchRow> rows;
  rows.push_back(measure_prefill(*engine, options));
  for (const int sequences : options.batch) rows.push_back(measure_decode(*engine, options, sequences));
  // Before the bandwidth, whose buffer is no part of running the model.
  const uint64_t peak = peak_memory();
  const double bandwidth = read_bandwidth(info.threads);
  print(options.json ? to_line(as_json(info, rows, bandwidth, peak)) + "\n"
                     : as_table(info, rows, bandwidth, peak));
  return 0;
}

}  // namespace qwench::cli
