#include <fmt/format.h>

#include <algorithm>

#include "backend/device.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/expected_tensors.h"
#include "cli/command_line.h"
#include "cli/device_flags.h"
#include "cli/jsonl.h"
#include "cli/machine.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "core/log.h"
#include "core/memory.h"
#include "engine/model_plan.h"

namespace qwench::cli {
namespace {

struct Speed {
  double decode = 0;   // tok/s of the whole batch, its caches half full
  double prefill = 0;  // tok/s
};

Speed expected_speed(const ModelPlan& plan, const MachineLimits& machine) {
  Speed speed;
  const double batch = plan.batch;
  const double cache = static_cast<double>(plan.kv_cache()) / 2;
  const double by_bandwidth =
      (static_cast<double>(plan.bytes_per_token) + cache) / (machine.read_gb_per_s * 1e9);
  const double by_flops =
      2.0 * static_cast<double>(plan.macs_per_token) * batch / (machine.f32_gflop_per_s * 1e9);
  speed.decode = batch / std::max(by_bandwidth, by_flops);
  speed.prefill = machine.f32_gflop_per_s * 1e9 / (2.0 * static_cast<double>(plan.macs_per_token));
  return speed;
}

/// What bounds the speed of the CPU or of a device. Nothing where layers are streamed: that is up to the bus,
/// which is not measured; nor, with a warning, where a device has no room left to be measured.
std::optional<MachineLimits> limits_of(const std::optional<DeviceInfo>& device, const ModelPlan& plan,
                                       int threads) {
  if (!device) return machine_limits(threads);
  if (plan.weights_streamed > 0) return std::nullopt;
  try {
    ThreadPool pool(1);
    const std::optional<DeviceSpeed> speed = make_backend(device, {}, pool)->measure_speed();
    if (!speed) return std::nullopt;
    MachineLimits limits;
    limits.read_gb_per_s = speed->read_gb_per_s;
    limits.f32_gflop_per_s = speed->f32_gflop_per_s;
    return limits;
  } catch (const Error& error) {
    log_warning(fmt::format("the device's speed was not measured: {}", error.what()));
    return std::nullopt;
  }
}

struct Report {
  std::string name;
  std::string refusal;  // empty when it fits
  ModelPlan plan;
  std::optional<DeviceInfo> device;  // absent: the CPU
  uint64_t available = 0;
  int longest = 0;
  int largest = 0;
  int asked_batch = 1;
  std::string change;
  std::optional<MachineLimits> machine;
  Speed speed;

  bool fits() const { return refusal.empty() && plan.batch >= asked_batch; }
};

std::string size(uint64_t bytes) {
  if (bytes < 10'000'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return short_bytes(static_cast<double>(bytes));
}

std::string verdict(const Report& report) {
  if (!report.refusal.empty()) return "no: " + report.refusal;
  if (report.fits()) return "yes, it fits";
  return fmt::format(
      "no: {} sequences of {} positions were asked for, but memory holds {} at once; the others would wait",
      report.asked_batch, report.plan.context, report.plan.batch);
}

std::string as_text(const Report& report, bool colours) {
  std::string text = styled(printable(report.name), kBold, colours) + "\n";
  const auto row = [&](std::string_view label, const std::string& value, const std::string& note = "") {
    text += fmt::format("{:<22}{:>10}{}\n", label, value, note.empty() ? "" : "   " + note);
  };
  if (report.refusal.empty()) {
    const ModelPlan& p = report.plan;
    if (p.on_device) {
      row("weights", size(p.weights_resident),
          fmt::format("{} of {} layers and what belongs to none", p.gpu_layers, p.layers));
      if (p.weights_streamed > 0)
        row("slots", size(p.weights_slots),
            fmt::format("for {} of the other layers, which are streamed from the host's memory",
                        size(p.weights_streamed)));
    } else {
      row("weights", size(p.weights));
      row("embedding", size(p.embedding));
    }
    row("KV cache", size(p.kv_cache()),
        fmt::format("{} x {} positions, {} bytes each", p.batch, p.context, p.kv_per_token));
    row("activations", size(p.activations));
    if (!p.on_device) {
      row("tokenizer", size(p.text));
      row("program", size(p.program));
    }
    row("total", size(p.total()), report.device ? "on " + printable(report.device->name) : "on the CPU");
  }
  row("available", size(report.available));
  text += styled(printable(verdict(report)), kBold, colours) + "\n";
  if (report.longest > 0) text += fmt::format("longest context of one sequence: {}\n", report.longest);
  if (report.largest > 0 && report.refusal.empty())
    text += fmt::format("largest batch at {} positions: {}\n", report.plan.context, report.largest);
  if (!report.change.empty()) text += fmt::format("what would make it fit: {}\n", report.change);
  if (report.machine) {
    text += fmt::format(
        "expected at most: decode {:.1f} tok/s with the cache half full, prefill {:.0f} tok/s ({:.1f} GB/s "
        "and {:.0f} "
        "GFLOP/s measured)\n",
        report.speed.decode, report.speed.prefill, report.machine->read_gb_per_s,
        report.machine->f32_gflop_per_s);
  }
  return text;
}

Json as_json(const Report& report) {
  const ModelPlan& p = report.plan;
  Json object{{"model", report.name},
              {"fits", report.fits()},
              {"verdict", verdict(report)},
              {"available", report.available},
              {"longest_context", report.longest},
              {"largest_batch", report.largest},
              {"cheapest_change", report.change.empty() ? Json(nullptr) : Json(report.change)}};
  if (!report.refusal.empty()) return object;
  object["device"] = report.device ? fmt::format("vulkan:{}", report.device->index) : "cpu";
  object["context"] = p.context;
  object["batch"] = p.batch;
  if (report.device) {
    object["device_name"] = report.device->name;
    object["layers"] = p.layers;
    object["gpu_layers"] = p.gpu_layers;
    object["bytes"] = {{"weights_resident", p.weights_resident}, {"weights_slots", p.weights_slots},
                       {"weights_streamed", p.weights_streamed}, {"kv_cache", p.kv_cache()},
                       {"activations", p.activations},           {"total", p.total()}};
  } else {
    object["bytes"] = {{"weights", p.weights},     {"embedding", p.embedding},
                       {"kv_cache", p.kv_cache()}, {"activations", p.activations},
                       {"tokenizer", p.text},      {"program", p.program},
                       {"total", p.total()}};
  }
  object["kv_bytes_per_token"] = p.kv_per_token;
  object["weight_bytes_per_token"] = p.bytes_per_token;
  if (!report.machine) return object;
  object["machine"] = {{"read_gb_per_s", report.machine->read_gb_per_s},
                       {"f32_gflop_per_s", report.machine->f32_gflop_per_s}};
  object["expected"] = {{"decode_tokens_per_second", report.speed.decode},
                        {"prefill_tokens_per_second", report.speed.prefill}};
  return object;
}

}  // namespace

int plan_command(const Arguments& arguments) {
  CommandLine line(
      "plan",
      "What a model takes in memory before it is loaded, whether it fits, and how fast it can be at "
      "most. Exit code 1 when it does not fit.",
      "  qwench plan ~/models/Qwen3-0.6B\n"
      "  qwench plan model.gguf --ctx 8192 --batch 4\n"
      "  qwench plan ~/models/Qwen3-0.6B --dtype f32 --kv-dtype f16 --memory 8GB\n"
      "  qwench plan ~/models/Qwen3-0.6B --device vulkan --vram 4GiB\n");
  ModelFlags model;
  std::string memory;
  bool json = false;
  model.set_batch_flag("--batch,--max-batch", 1);
  model.add_to(line, ModelFlags::Default::none, true);
  line.add_option("--memory", memory, "plan for so much memory, not for what there is now").value_name("8GB");
  line.add_flag("--json", json, "one JSON object on stdout");
  if (!line.parse(arguments)) return 0;
  model.finish();
  if (model.options().max_batch < 1)
    throw UsageError(fmt::format("--batch {}: expected 1 or more", model.options().max_batch));

  Report report;
  const std::optional<DeviceInfo> device = choose_device(model.options().device);
  if (device && !memory.empty())
    throw UsageError("--memory is about the CPU's; a device's is planned by --vram");
  report.available = device           ? device_memory(*device, model.options())
                     : memory.empty() ? available_memory()
                                      : parse_bytes("--memory", memory);
  if (device) report.device = *device;
  const DeviceInfo* on = device ? &*device : nullptr;
  const auto checkpoint = Checkpoint::open(model.path());
  check_tensors(*checkpoint);
  const EngineOptions& options = model.options();
  report.name = model.path().filename().string();
  report.asked_batch = options.max_batch;
  try {
    report.plan = plan_model(*checkpoint, options, report.available, on);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory) throw;
    report.refusal = error.what();
  }
  report.longest = longest_context(*checkpoint, options, report.available, on);
  if (report.refusal.empty()) {
    report.largest = largest_batch(*checkpoint, options, report.available, on);
    report.machine = limits_of(device, report.plan, options.threads);
    if (report.machine) report.speed = expected_speed(report.plan, *report.machine);
  }
  if (!report.fits()) report.change = cheapest_change(*checkpoint, options, report.available, on);
  print(json ? to_line(as_json(report)) + "\n" : as_text(report, shows_colours(stdout)));
  return report.fits() ? 0 : 1;
}

}  // namespace qwench::cli
