#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "backend/device.h"
#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/subject_flags.h"
#include "cli/terminal.h"
#include "cli/verify_invariance.h"
#include "engine/model_plan.h"
#include "verify/device_check.h"
#include "verify/reference_check.h"
#include "verify/self_check.h"
#include "verify/speed.h"

namespace qwench::cli {
namespace {

struct VerifyOptions {
  std::string reference;
  std::optional<float> tolerance;
  bool compare_speed = false;
  std::optional<uint64_t> seed;
  std::optional<int> tokens;
  bool invariance = false;
  std::optional<int> rounds;
  bool json = false;
};

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string divergence_place(const Difference& difference) {
  if (!difference.first()) return "-";
  const Difference::First& first = *difference.first();
  return fmt::format("prompt {}, position {}", first.prompt, first.position);
}

std::string as_table(const ReferenceReport& report) {
  size_t width = 5;
  for (const ReferenceRow& row : report.rows) width = std::max(width, row.name.size());
  std::string table = fmt::format("{:<{}}  {:>7}  {:>9}  {:>9}  {:>12}  {:>9}  first divergence\n", "place",
                                  width, "tensors", "max abs", "relative", "cosine", "tolerance");
  for (const ReferenceRow& row : report.rows) {
    const Difference& d = row.difference;
    table +=
        fmt::format("{:<{}}  {:>7}  {:>9.2e}  {:>9.2e}  {:>12.9f}  {:>9.2e}  {}\n", row.name, width,
                    d.tensors(), d.max_abs(), d.relative(), d.cosine(), d.tolerance(), divergence_place(d));
  }
  if (report.rows.empty()) table = "no tensors were recorded: states and logits are not compared\n";
  int tokens = 0;
  int equal = 0;
  for (size_t i = 0; i < report.greedy.size(); ++i) {
    const GreedyOutcome& outcome = report.greedy[i];
    tokens += outcome.tokens;
    equal += outcome.equal;
    if (outcome.equal == outcome.tokens) continue;
    table += fmt::format("greedy: prompt {} parts at token {}{}\n", i, outcome.equal,
                         outcome.margin ? fmt::format(", where the reference's margin is {:.2e}{}",
                                                      *outcome.margin, outcome.ok ? ": a tie" : "")
                                        : "");
  }
  if (tokens > 0) table += fmt::format("greedy: {} of {} tokens equal\n", equal, tokens);
  if (report.perplexity) {
    const PerplexityOutcome& p = *report.perplexity;
    table +=
        fmt::format("perplexity: mean negative log-likelihood {:.6f}, reference {:.6f}, difference {:.1e}\n",
                    p.got, p.want, std::abs(p.got - p.want));
  }
  if (!report.not_compared.empty())
    table +=
        fmt::format("not compared: {}\n", printable(fmt::format("{}", fmt::join(report.not_compared, ", "))));
  return table;
}

Json as_json(const ReferenceReport& report) {
  Json rows = Json::array();
  for (const ReferenceRow& row : report.rows) {
    const Difference& d = row.difference;
    Json line{{"place", row.name},
              {"tensors", d.tensors()},
              {"max_abs", number(d.max_abs())},
              {"relative", number(d.relative())},
              {"cosine", number(d.cosine())},
              {"tolerance", d.tolerance()},
              {"ok", d.ok()},
              {"first_divergence", nullptr}};
    if (const auto& first = d.first()) {
      line["first_divergence"] = {{"prompt", first->prompt},
                                  {"position", first->position},
                                  {"element", first->element},
                                  {"got", number(first->got)},
                                  {"want", number(first->want)}};
    }
    rows.push_back(std::move(line));
  }
  Json greedy = Json::array();
  for (const GreedyOutcome& outcome : report.greedy) {
    greedy.push_back({{"tokens", outcome.tokens},
                      {"equal", outcome.equal},
                      {"margin", outcome.margin ? Json(*outcome.margin) : Json(nullptr)},
                      {"ok", outcome.ok}});
  }
  Json perplexity = nullptr;
  if (const auto& p = report.perplexity)
    perplexity = {{"mean_nll", p->got}, {"reference", p->want}, {"max_abs", p->max_abs}, {"ok", p->ok}};
  return {{"rows", std::move(rows)},
          {"greedy", std::move(greedy)},
          {"perplexity", std::move(perplexity)},
          {"not_compared", report.not_compared}};
}

struct SpeedRows {
  ReferenceTimings reference;
  DecodeSpeed here;
  int prompt_tokens = 0;
};

SpeedRows compare_speed(Subject& subject, const Reference& reference) {
  const ReferenceTimings& timings = *reference.timings();
  const std::vector<TokenId>& prompt = reference.prompts()[static_cast<size_t>(timings.prompt)].ids;
  return {timings, measure_speed(subject, prompt, timings.new_tokens), static_cast<int>(prompt.size())};
}

std::string as_table(const SpeedRows& speed) {
  const auto row = [](const std::string& what, double tokens, double reference, double here) {
    return fmt::format("{:<32} {:>10.1f} tok/s {:>10.1f} tok/s {:>8.2f} x\n", what, tokens / reference,
                       tokens / here, reference / here);
  };
  const int count = speed.reference.new_tokens;
  return fmt::format("{:<32} {:>16} {:>16}\n", "speed", "reference", "qwench") +
         row(fmt::format("prefill of {}", speed.prompt_tokens), speed.prompt_tokens,
             speed.reference.prefill_seconds, speed.here.prefill_seconds) +
         row(fmt::format("{} new tokens, with the cache", count), count, speed.reference.with_cache_seconds,
             speed.here.with_cache_seconds) +
         row(fmt::format("{} new tokens, without it", count), count, speed.reference.without_cache_seconds,
             speed.here.without_cache_seconds) +
         fmt::format("the reference's machine: {}\n",
                     speed.reference.device.empty() ? "not recorded" : printable(speed.reference.device));
}

Json as_json(const SpeedRows& speed) {
  return {{"prompt_tokens", speed.prompt_tokens},
          {"new_tokens", speed.reference.new_tokens},
          {"reference",
           {{"device", speed.reference.device},
            {"prefill_seconds", speed.reference.prefill_seconds},
            {"with_cache_seconds", speed.reference.with_cache_seconds},
            {"without_cache_seconds", speed.reference.without_cache_seconds}}},
          {"qwench",
           {{"prefill_seconds", speed.here.prefill_seconds},
            {"with_cache_seconds", speed.here.with_cache_seconds},
            {"without_cache_seconds", speed.here.without_cache_seconds}}}};
}

int verify_reference(const ModelFlags& model, const VerifyOptions& options) {
  const Reference reference = Reference::open(options.reference);
  if (options.compare_speed && !reference.timings()) {
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: this reference has no timings; tools/record_reference.py --time records them",
                    reference.path().string()));
  }
  SubjectOptions set_up = subject_options(model.options(), DType::f32);
  set_up.positions = positions_needed(reference);
  set_up.max_rows = set_up.positions;
  const auto subject = load_subject(Checkpoint::open(model.path()), set_up);
  std::fputs((banner(*subject, model.path(), set_up) + "\n").c_str(), stderr);
  ReferenceTolerances tolerances;
  tolerances.scale = options.tolerance.value_or(1.0F);
  const ReferenceReport report = check_reference(*subject, reference, tolerances);
  std::optional<SpeedRows> speed;
  if (options.compare_speed) speed = compare_speed(*subject, reference);
  if (options.json) {
    Json json{{"model", model.path().filename().string()},
              {"reference", reference.path().string()},
              {"made_with", reference.made_with()},
              {"ok", report.ok()},
              {"verdict", report.verdict()}};
    json.update(as_json(report));
    if (speed) json["speed"] = as_json(*speed);
    print(to_line(json) + "\n");
  } else {
    std::string table = as_table(report);
    if (!reference.made_with().empty())
      table += fmt::format("recorded with {}\n", printable(reference.made_with()));
    if (speed) table += as_table(*speed);
    print(table + fmt::format("verdict: {}\n", printable(report.verdict())));
  }
  return report.ok() ? 0 : 1;
}

std::string as_table(const SelfCheckReport& report) {
  std::string table;
  for (const SelfCheckLine& line : report.lines) {
    const std::string outcome = line.tolerance > 0
                                    ? fmt::format("{}, {:.1e} of {:.1e} allowed", line.ok ? "ok" : "differs",
                                                  line.max_abs, line.tolerance)
                                : line.ok ? "ok, bit for bit"
                                          : fmt::format("differs by {:.2e}", line.max_abs);
    table += fmt::format("{:<8} {:<34} {:>5} rows  {}\n", line.isa, line.what, line.rows, outcome);
  }
  if (!report.precision.empty())
    table += fmt::format("\n{:<34} {:>10} {:>10} {:>10} {:>10} {:>8}\n", "beside f32: KL divergence", "mean",
                         "median", "99 %", "max", "top-1");
  for (const PrecisionLine& line : report.precision) {
    if (!line.divergence) {
      table += fmt::format("{:<34} not run: {}\n", line.what, line.note);
      continue;
    }
    const Divergence::Summary& d = *line.divergence;
    table +=
        fmt::format("{:<34} {:>10.2e} {:>10.2e} {:>10.2e} {:>10.2e} {:>6.1f} %{}\n", line.what, d.mean,
                    d.median, d.percentile_99, d.max, 100 * d.top1_agreement, line.ok ? "" : "  too far");
  }
  return table + "verdict: " + report.verdict() + "\n";
}

Json as_json(const SelfCheckReport& report, const std::string& model) {
  Json checks = Json::array();
  for (const SelfCheckLine& line : report.lines) {
    checks.push_back({{"isa", line.isa},
                      {"what", line.what},
                      {"rows", line.rows},
                      {"max_abs", number(line.max_abs)},
                      {"tolerance", line.tolerance},
                      {"ok", line.ok}});
  }
  Json precision = Json::array();
  for (const PrecisionLine& line : report.precision) {
    Json row{{"what", line.what}, {"ok", line.ok}};
    if (line.divergence) {
      row["kl_mean"] = line.divergence->mean;
      row["kl_median"] = line.divergence->median;
      row["kl_99"] = line.divergence->percentile_99;
      row["kl_max"] = line.divergence->max;
      row["top1_agreement"] = line.divergence->top1_agreement;
    } else {
      row["not_run"] = line.note;
    }
    precision.push_back(std::move(row));
  }
  return {{"model", model},
          {"tokens", report.tokens},
          {"ok", report.ok()},
          {"verdict", report.verdict()},
          {"checks", std::move(checks)},
          {"precision", std::move(precision)}};
}

std::string as_table(const DeviceReport& report) {
  std::string table =
      fmt::format("{}, beside the CPU with {} weights\n{:<24} {:>12} {:>12} {:>12}\n",
                  printable(report.device), report.cpu_weights, "state", "largest", "max |diff|", "allowed");
  for (const ReferenceRow& row : report.rows) {
    table += fmt::format("{:<24} {:>12.4g} {:>12.3e} {:>12.3e}{}\n", row.name, row.difference.largest(),
                         row.difference.max_abs(), row.difference.tolerance(),
                         row.difference.ok() ? "" : "  differs");
  }
  table += fmt::format("greedy tokens: {} of {} equal{}\n", report.greedy_equal, report.greedy_tokens,
                       report.greedy_equal == report.greedy_tokens
                           ? std::string()
                           : fmt::format("; where they part the CPU's margin is {:.3g}", report.margin));
  for (const SelfCheckLine& line : report.ways.lines) {
    table += fmt::format("{:<34} {:>5} rows  {}\n", line.what, line.rows,
                         line.ok ? "ok, bit for bit" : fmt::format("differs by {:.2e}", line.max_abs));
  }
  return table + fmt::format("verdict: {}\n", printable(report.verdict()));
}

Json as_json(const DeviceReport& report, const std::string& model) {
  Json rows = Json::array();
  for (const ReferenceRow& row : report.rows) {
    rows.push_back({{"name", row.name},
                    {"largest", number(row.difference.largest())},
                    {"max_abs", number(row.difference.max_abs())},
                    {"tolerance", row.difference.tolerance()},
                    {"ok", row.difference.ok()}});
  }
  Json checks = Json::array();
  for (const SelfCheckLine& line : report.ways.lines)
    checks.push_back(
        {{"what", line.what}, {"rows", line.rows}, {"max_abs", number(line.max_abs)}, {"ok", line.ok}});
  return {{"model", model},
          {"device", report.device},
          {"cpu_weights", report.cpu_weights},
          {"ok", report.ok()},
          {"verdict", report.verdict()},
          {"rows", std::move(rows)},
          {"greedy",
           {{"tokens", report.greedy_tokens}, {"equal", report.greedy_equal}, {"margin", report.margin}}},
          {"checks", std::move(checks)}};
}

int verify_self(const ModelFlags& model, const VerifyOptions& options) {
  const auto checkpoint = Checkpoint::open(model.path());
  SelfCheckOptions checks;
  checks.dtype = model.options().dtype;
  checks.packed_bf16 = model.options().packed_bf16;
  checks.kv_dtype = model.options().cells(stored_type(*checkpoint));
  checks.threads = model.options().threads;
  checks.seed = options.seed.value_or(0);
  checks.tokens = options.tokens.value_or(checks.tokens);
  StatusLine status;
  checks.progress = [&](const std::string& what) { status.update("checking: " + what); };
  checks.device = model.options().device;
  checks.gpu_layers = model.options().gpu_layers;
  checks.device_memory = model.options().device_memory;
  if (const std::optional<DeviceInfo> device = choose_device(checks.device)) {
    checks.device = fmt::format("vulkan:{}", device->index);
    const DeviceReport report = check_device(checkpoint, checks);
    status.clear();
    print(options.json ? to_line(as_json(report, model.path().filename().string())) + "\n"
                       : as_table(report));
    return report.ok() ? 0 : 1;
  }
  checks.device = "cpu";
  const SelfCheckReport report = check_self(checkpoint, checks);
  status.clear();
  print(options.json ? to_line(as_json(report, model.path().filename().string())) + "\n" : as_table(report));
  return report.ok() ? 0 : 1;
}

}  // namespace

int verify_command(const Arguments& arguments) {
  CommandLine line(
      "verify",
      "Checks that this engine computes what it should: with --reference, what the official "
      "implementation computed; without, the same bits by every way of computing them. Exit code 1 "
      "when it does not. With --invariance, requests in random batches get bit for bit what each gets alone.",
      "  qwench verify ~/models/Qwen3-0.6B\n"
      "  qwench verify ~/models/Qwen3-0.6B --reference qwen3.json\n"
      "  qwench verify ~/models/Qwen3-0.6B --reference qwen3.json --compare-speed\n"
      "  qwench verify ~/models/Qwen3-0.6B --device vulkan\n"
      "  qwench verify ~/models/Qwen3-0.6B --invariance --seed 7 --rounds 20\n");
  ModelFlags model;
  model.keep_exact_cells();
  VerifyOptions options;
  model.add_to(line, ModelFlags::Default::none, false);
  model.add_computing_to(line);
  line.add_option("--reference", options.reference,
                  "values recorded by tools/record_reference.py: the .json file or its folder")
      .value_name("FILE");
  line.add_option("--tolerance", options.tolerance,
                  "with --reference: times what f32 arithmetic may differ by (default 1)")
      .value_name("X");
  line.add_flag("--compare-speed", options.compare_speed,
                "with --reference: the official implementation's speed beside this engine's");
  line.add_flag("--invariance", options.invariance, "random batches of requests beside each request alone");
  line.add_option("--rounds", options.rounds, "with --invariance: batches tried (default 8)")
      .value_name("N")
      .whole_number();
  line.add_option("-s,--seed", options.seed, "without --reference: of the random tokens (default 0)")
      .value_name("N");
  line.add_option("--tokens", options.tokens, "without --reference: how many are run (default 96)")
      .value_name("N")
      .whole_number();
  line.add_flag("--json", options.json, "one JSON object on stdout");
  if (!line.parse(arguments)) return 0;
  model.finish();
  const bool referenced = !options.reference.empty();
  if (options.invariance && (referenced || options.tokens))
    throw UsageError("--invariance does not go with --reference and --tokens");
  if (options.rounds && !options.invariance) throw UsageError("--rounds needs --invariance");
  if (options.rounds && (*options.rounds < 1 || *options.rounds > 100000))
    throw UsageError(fmt::format("--rounds {}: expected 1 to 100000", *options.rounds));
  if (!referenced && (options.tolerance || options.compare_speed))
    throw UsageError("--tolerance and --compare-speed need --reference");
  if (referenced && (options.seed || options.tokens))
    throw UsageError("--seed and --tokens do not go with --reference, whose tokens are recorded");
  if (options.tolerance && !(*options.tolerance > 0 && std::isfinite(*options.tolerance)))
    throw UsageError(fmt::format("--tolerance {}: expected a number above 0", *options.tolerance));
  if (options.tokens && (*options.tokens < 2 || *options.tokens > 4096))
    throw UsageError(fmt::format("--tokens {}: expected 2 to 4096", *options.tokens));
  if (options.invariance)
    return verify_invariance(model, options.seed.value_or(0), options.rounds.value_or(8), options.json);
  return referenced ? verify_reference(model, options) : verify_self(model, options);
}

}  // namespace qwench::cli
