#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/machine.h"
#include "cli/model_flags.h"
#include "cli/operation_table.h"
#include "cli/subject_flags.h"
#include "cli/terminal.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "engine/model_plan.h"
#include "kernels/isa.h"

namespace qwench::cli {
namespace {

struct BenchOptions {
  int prompt = 512;
  int decode = 32;
  std::vector<int> depths = {0};
  std::vector<int> batches = {1, 8, 50};
  int repeat = 3;
  int context = 0;
  bool machine = false;
  bool profile = false;
  bool json = false;
  bool csv = false;
};

/// Which of them the command line has.
struct Given {
  bool prompt = false;
  bool decode = false;
};

void check(const BenchOptions& options) {
  const auto range = [](const char* flag, int value, int low, int high) {
    if (value < low || value > high)
      throw UsageError(fmt::format("{} {}: expected {} to {}", flag, value, low, high));
  };
  constexpr int kMost = 1 << 24;
  range("-p", options.prompt, 1, kMost);
  range("-n", options.decode, 1, kMost);
  range("-r", options.repeat, 1, 1000);
  for (const int depth : options.depths) range("-d", depth, 0, kMost);
  for (const int sequences : options.batches) range("-b", sequences, 1, 4096);
  if (options.json && options.csv) throw UsageError("give --json or --csv, not both");
  if (options.profile && (options.json || options.csv))
    throw UsageError("--profile prints a table; qwench trace --json has the same as JSON");
}

void note(const std::string& line) { std::fputs(("qwench: " + line + "\n").c_str(), stderr); }

/// The defaults are cut to what the context holds, with a line on stderr; what was asked for is not.
void fit(BenchOptions& options, const Given& given, int context) {
  if (options.prompt > context && !given.prompt) {
    options.prompt = context;
    note(fmt::format("the context holds {} positions, so -p is {}", context, context));
  }
  if (options.decode > context && !given.decode) {
    options.decode = context;
    note(fmt::format("the context holds {} positions, so -n is {}", context, context));
  }
  for (const auto& [flag, tokens] : {std::pair{"-p", options.prompt}, std::pair{"-n", options.decode}}) {
    if (tokens > context)
      throw UsageError(fmt::format("{} {}: the context holds {} positions", flag, tokens, context));
    for (const int depth : options.depths) {
      if (int64_t{depth} + tokens > context)
        throw UsageError(
            fmt::format("-d {} and {} {}: the context holds {} positions", depth, flag, tokens, context));
    }
  }
}

/// The cases whose caches fit memory; of the others a line on stderr.
std::vector<SpeedCase> cases_of(const BenchOptions& options, const Checkpoint& checkpoint,
                                const ModelFlags& model) {
  std::vector<SpeedCase> cases;
  const auto add = [&](const SpeedCase& test) {
    EngineOptions load = model.options();
    load.context = test.positions();
    load.max_batch = test.sequences;
    int most = 0;
    try {
      const std::optional<DeviceInfo> device = choose_device(load.device);
      most = device ? plan_model(checkpoint, load, device_memory(*device, load), &*device).batch
                    : plan_model(checkpoint, load, available_memory()).batch;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
      if (test.sequences == 1) throw;
    }
    if (most >= test.sequences) {
      cases.push_back(test);
    } else {
      note(fmt::format("left out: {} sequences of {} positions do not fit the memory that is available",
                       test.sequences, test.positions()));
    }
  };
  for (const int depth : options.depths) {
    add({1, options.prompt, depth, 1});
    for (const int sequences : options.batches) add({sequences, 1, depth, options.decode});
  }
  if (cases.empty())
    throw Error(ErrorKind::out_of_memory,
                "no test fits the memory that is available; use a smaller -b or -d");
  return cases;
}

BenchRow measure(Speedometer& speed, const SpeedCase& test, int repeat) {
  BenchRow row{test, speed.work(test), {}};
  speed.prepare(test);
  // One that does not count: it reads the weights from disk and touches the cache.
  SpeedCase warm_up = test;
  warm_up.steps = 1;
  speed.seconds(warm_up);
  for (int i = 0; i < repeat; ++i) row.seconds.push_back(speed.seconds(test));
  return row;
}

void print_profile(Subject& subject, TracingBackend& tracer, const BenchOptions& options) {
  std::vector<TokenId> prompt(static_cast<size_t>(std::min(options.prompt, subject.decoder().max_tokens())));
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<TokenId>((i * 7919 + 13) % subject.vocab());
  for (const TraceStep& step : trace_steps(subject, tracer, prompt, 1, false))
    print("\n" + operation_table(step, true));
}

int bench_machine(const ModelFlags& model, const BenchOptions& options) {
  const int most = thread_count(model.options().threads);
  std::vector<MachineRow> rows;
  StatusLine status;
  for (int threads = 1; threads <= most; threads = threads < most ? std::min(2 * threads, most) : most + 1) {
    status.update(fmt::format("measuring {}", plural(threads, "thread")));
    rows.push_back({threads, machine_limits(threads, true)});
  }
  status.clear();
  const std::string device = machine_description();
  if (options.json) {
    print(to_line(as_json(device, rows)) + "\n");
  } else {
    print(options.csv ? as_csv(rows) : as_table(device, rows, shows_colours(stdout)));
  }
  return 0;
}

}  // namespace

int bench_command(const Arguments& arguments) {
  CommandLine line(
      "bench",
      "Measures prefill and decode speed, and the share of the machine's limits that they reach. With "
      "--machine the limits alone: memory read, f32 multiply-adds, int8 dot products, by number of threads.",
      "  qwench bench ~/models/Qwen3-0.6B\n"
      "  qwench bench model.gguf -p 1024 -n 128 -b 1,8,50 -d 0,4096 -r 5\n"
      "  qwench bench model.gguf --profile\n"
      "  qwench bench --machine\n");
  ModelFlags model;
  BenchOptions options;
  model.add_to(line, ModelFlags::Default::optional, false);
  model.add_computing_to(line);
  line.add_option("-c,--context,--ctx", options.context,
                  "positions a sequence may have; 0: the model's limit")
      .value_name("N")
      .whole_number();
  const Option prompt = line.add_option("-p,--prompt-tokens", options.prompt, "tokens of the prefill test")
                            .value_name("N")
                            .whole_number()
                            .show_default();
  const Option decode = line.add_option("-n,--decode-tokens", options.decode, "tokens of the decode tests")
                            .value_name("N")
                            .whole_number()
                            .show_default();
  line.add_option("-b,--batch", options.batches, "sequences that decode at once, one test each")
      .value_name("N,...")
      .separated_by(',')
      .show_default();
  line.add_option("-d,--depth", options.depths,
                  "positions that a sequence holds before a test; all tests for each")
      .value_name("N,...")
      .separated_by(',')
      .show_default();
  line.add_option("-r,--repeat", options.repeat, "repetitions of each test")
      .value_name("N")
      .whole_number()
      .show_default();
  line.add_flag("--machine", options.machine, "the machine's limits alone, without a model");
  line.add_flag("--profile", options.profile,
                "the time of each operation of one prefill and one decode step too");
  line.add_flag("--json", options.json, "one JSON object on stdout");
  line.add_flag("--csv", options.csv, "comma-separated values on stdout");
  if (!line.parse(arguments)) return 0;
  check(options);
  model.finish();
  if (options.machine) {
    if (!model.path().empty()) throw UsageError("--machine measures the machine: it takes no model");
    return bench_machine(model, options);
  }
  if (model.path().empty())
    throw UsageError("no model was named; give a checkpoint folder or a .gguf file, or --machine");

  const auto checkpoint = Checkpoint::open(model.path());
  const int limit = static_cast<int>(std::min<int64_t>(checkpoint->config().max_position, 1 << 24));
  if (options.context > limit)
    throw UsageError(fmt::format("-c {}: the model's limit is {}", options.context, limit));
  fit(options, {prompt.given(), decode.given()}, options.context > 0 ? options.context : limit);
  const std::vector<SpeedCase> cases = cases_of(options, *checkpoint, model);
  SubjectOptions set_up =
      Speedometer::room_for(subject_options(model.options(), stored_type(*checkpoint)), cases);
  TracingBackend* tracer = nullptr;
  if (options.profile) {
    set_up.positions = std::min(limit, std::max(set_up.positions, options.prompt + 1));
    set_up.decorate = [&](std::unique_ptr<Backend> backend) {
      auto tracing = std::make_unique<TracingBackend>(std::move(backend));
      tracer = tracing.get();
      return tracing;
    };
  }
  const auto subject = load_subject(checkpoint, set_up);
  std::fputs((banner(*subject, model.path(), set_up) + "\n").c_str(), stderr);

  const WeightTotals weights = totals(subject->decoder().weights());
  BenchReport report;
  report.model = model.path().filename().string();
  report.weight_type = name(weights.main_type);
  report.cell_type = name(set_up.kv_dtype);
  report.device = subject->backend().description();
  report.threads = subject->threads();
  report.weight_bytes = weights.bytes_per_token;
  Speedometer speed(*subject);
  StatusLine status;
  for (const SpeedCase& test : cases) {
    status.update("measuring " + BenchRow{test, {}, {}}.name());
    report.rows.push_back(measure(speed, test, options.repeat));
  }
  // Before the machine's limits, whose buffer is no part of running the model.
  report.peak_memory = peak_memory();
  status.update("measuring the machine");
  if (const std::optional<DeviceSpeed> speed_of_device = subject->backend().measure_speed()) {
    report.limits.read_gb_per_s = speed_of_device->read_gb_per_s;
    report.limits.f32_gflop_per_s = speed_of_device->f32_gflop_per_s;
    report.limits.int8_gop_per_s = 0;
    report.copy_gb_per_s = speed_of_device->copy_gb_per_s;
  } else {
    report.limits = machine_limits(report.threads, true);
  }
  status.clear();
  if (options.json) {
    print(to_line(as_json(report)) + "\n");
  } else {
    print(options.csv ? as_csv(report) : as_table(report, shows_colours(stdout)));
  }
  if (tracer != nullptr) print_profile(*subject, *tracer, options);
  return 0;
}

}  // namespace qwench::cli
