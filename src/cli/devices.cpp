#include <fmt/format.h>

#include "backend/device.h"
#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "core/memory.h"
#include "core/thread_pool.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

Json as_json(const DeviceInfo& device) {
  return {{"device", fmt::format("vulkan:{}", device.index)},
          {"name", device.name},
          {"type", device.type},
          {"driver", device.driver},
          {"vulkan", device.api},
          {"memory", device.memory},
          {"budget", device.budget},
          {"budget_from_driver", device.has_budget},
          {"f16", device.f16},
          {"int8", device.int8},
          {"subgroup", device.subgroup},
          {"copy_queue", device.copy_queue},
          {"max_binding", device.max_binding},
          {"usable", device.unusable.empty()},
          {"why_not", device.unusable.empty() ? Json(nullptr) : Json(device.unusable)}};
}

std::string as_text(const DeviceInfo& device) {
  std::string text = fmt::format("vulkan:{}  {}\n", device.index, printable(device.name));
  const auto row = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<10}{}\n", label, value);
  };
  row("type", device.type + (device.software() ? ", which --device auto never takes" : ""));
  row("memory",
      fmt::format("{}, of which {} {}", short_bytes(static_cast<double>(device.memory)),
                  short_bytes(static_cast<double>(device.budget)),
                  device.has_budget ? "may be used now" : "may be used (the driver gives no budget)"));
  row("shaders", fmt::format("subgroups of {}, f16 {}, int8 {}, buffers of {}", device.subgroup,
                             device.f16 ? "yes" : "no", device.int8 ? "yes" : "no",
                             short_bytes(static_cast<double>(device.max_binding))));
  row("copies", device.copy_queue ? "by a queue of their own" : "by the queue that computes");
  row("driver", fmt::format("{}, Vulkan {}", printable(device.driver), device.api));
  if (!device.unusable.empty()) row("not used", device.unusable);
  return text;
}

}  // namespace

int devices_command(const Arguments& arguments) {
  CommandLine line(
      "devices",
      "The devices that --device takes: the CPU and what Vulkan finds, with their memory, features and "
      "drivers.",
      "  qwench devices\n"
      "  qwench devices --json\n");
  bool json = false;
  line.add_flag("--json", json, "one JSON object on stdout");
  if (!line.parse(arguments)) return 0;
  std::vector<DeviceInfo> devices;
  std::string why_none;
  try {
    devices = vulkan_devices();
    if (devices.empty()) why_none = "Vulkan has no device here";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    why_none = error.what();
  }
  const std::optional<DeviceInfo> automatic = choose_device("auto");
  const std::string chosen = automatic ? fmt::format("vulkan:{}", automatic->index) : "cpu";
  if (json) {
    Json list = Json::array();
    for (const DeviceInfo& device : devices) list.push_back(as_json(device));
    print(to_line({{"auto", chosen},
                   {"cpu", {{"threads", available_cores()}, {"memory_available", available_memory()}}},
                   {"devices", std::move(list)},
                   {"why_none", why_none.empty() ? Json(nullptr) : Json(why_none)}}) +
          "\n");
    return 0;
  }
  std::string text = fmt::format("cpu\n  {:<10}{}, {} available\n", "threads", available_cores(),
                                 short_bytes(static_cast<double>(available_memory())));
  for (const DeviceInfo& device : devices) text += as_text(device);
  if (!why_none.empty()) text += fmt::format("vulkan: none: {}\n", why_none);
  text += fmt::format("--device auto takes {}\n", chosen);
  print(text);
  return 0;
}

}  // namespace qwench::cli
