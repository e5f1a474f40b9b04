#include "cli/operation_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace qwench::cli {
namespace {

/// What a device was asked to do, and how much of the copies ran while something was computed.
std::string device_lines(const TraceStep& step) {
  if (step.counts.submits == 0) return "";
  const auto counted = [](int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string lines = fmt::format("{}, {} of {} bytes\n", counted(step.counts.submits, "submit"),
                                  counted(step.counts.read_backs, "read-back"), step.counts.read_back_bytes);
  if (step.copies.empty()) return lines;
  double copied = 0;
  double beside = 0;
  for (const CopyTime& copy : step.copies) {
    copied += copy.seconds;
    for (const TraceEvent& event : step.events) {
      const double begin = std::max(copy.start, event.start);
      const double end = std::min(copy.start + copy.seconds, event.start + event.seconds);
      beside += std::max(0.0, end - begin);
    }
  }
  return lines +
         fmt::format("{} copied to the device in {:.3f} ms, {:.3f} ms of them while others computed\n",
                     counted(static_cast<int64_t>(step.copies.size()), "layer"), 1e3 * copied, 1e3 * beside);
}

}  // namespace

std::string operation_table(const TraceStep& step, bool totals_only) {
  const double whole = step.seconds();
  const auto line = [&](const std::string& layer, const std::string& name, const std::string& shape,
                        double seconds, double bytes) {
    std::string row = fmt::format(
        "{:>5}  {:<26} {:>9.3f} ms {:>5.1f} % {:>10} {:>7.2f} GB/s  {}", layer, name, 1e3 * seconds,
        100 * seconds / whole,
        bytes >= 1e6 ? fmt::format("{:.1f} MB", bytes / 1e6) : fmt::format("{:.1f} kB", bytes / 1e3),
        seconds > 0 ? bytes / seconds / 1e9 : 0.0, shape);
    row.resize(row.find_last_not_of(' ') + 1);
    return row + "\n";
  };
  std::string table =
      fmt::format("{}: {} operations, {:.3f} ms\n", step.name, step.events.size(), 1e3 * whole);
  table += device_lines(step);
  if (!totals_only) {
    for (const TraceEvent& event : step.events) {
      const std::string norm = event.norm > 0 ? fmt::format("  rms {:.4g}", event.norm) : "";
      table += line(event.layer >= 0 ? fmt::format("{}", event.layer) : "-", event.name,
                    event.shape + (event.fused ? "  in the one before" : "") + norm, event.seconds,
                    static_cast<double>(event.bytes));
    }
    table += "\nall layers\n";
  }
  uint64_t bytes = 0;
  for (const TraceTotal& total : totals(step)) {
    table += line(fmt::format("{}x", total.count), total.name, "", total.seconds,
                  static_cast<double>(total.bytes));
    bytes += total.bytes;
  }
  return table + line("", "the whole step", "", whole, static_cast<double>(bytes));
}

}  // namespace qwench::cli
