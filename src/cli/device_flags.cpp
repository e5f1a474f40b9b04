#include "cli/device_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "cli/terminal.h"

namespace qwench::cli {
namespace {

bool is_device(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "vulkan") return true;
  const std::string prefix = "vulkan:";
  return name.starts_with(prefix) && name.size() > prefix.size() && name.size() < prefix.size() + 5 &&
         std::all_of(name.begin() + static_cast<ptrdiff_t>(prefix.size()), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

uint64_t parse_bytes(const std::string& flag, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  double factor = 0;
  if (unit.empty() || unit == "b") factor = 1;
  for (const auto& [letter, power] : {std::pair{'k', 1}, {'m', 2}, {'g', 3}, {'t', 4}}) {
    const std::string prefix(1, letter);
    if (unit == prefix || unit == prefix + "b") factor = std::pow(1000.0, power);
    if (unit == prefix + "ib") factor = std::pow(1024.0, power);
  }
  const double bytes = number * factor;
  if (error != std::errc{} || factor == 0 || !(bytes >= 1) || bytes > 1e18)
    throw UsageError(fmt::format("{} {}: expected an amount such as 8GB or 7.5GiB", flag, printable(text)));
  return static_cast<uint64_t>(bytes);
}

void DeviceFlags::add_to(CommandLine& line, EngineOptions& options) {
  const std::string group = "Loading";
  line.add_option(
          "--device", options.device,
          fmt::format("cpu, vulkan, vulkan:N (qwench devices lists them), or auto: a GPU where there is "
                      "one (default {})",
                      options.device))
      .value_name("NAME")
      .group(group);
  line.add_option("--gpu-layers", gpu_layers_,
                  "on a device: layers that stay there, the others are streamed; what fits when absent")
      .value_name("N")
      .whole_number()
      .group(group);
  line.add_option("--vram", memory_, "on a device: memory to use of it; what its driver gives when absent")
      .value_name("4GiB")
      .group(group);
}

void DeviceFlags::finish(EngineOptions& options) const {
  if (!is_device(options.device))
    throw UsageError(
        fmt::format("--device {}: expected auto, cpu, vulkan or vulkan:N", printable(options.device)));
  if (!memory_.empty()) options.device_memory = parse_bytes("--vram", memory_);
  options.gpu_layers = gpu_layers_;
  if (options.device == "cpu" && (gpu_layers_ || !memory_.empty()))
    throw UsageError(
        fmt::format("{} is about a device, and the model runs on the CPU: name one by --device vulkan",
                    gpu_layers_ ? "--gpu-layers" : "--vram"));
}

}  // namespace qwench::cli
