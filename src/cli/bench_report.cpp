#include "cli/bench_report.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "cli/model_flags.h"
#include "cli/terminal.h"

namespace qwench::cli {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::string heading(const std::string& text, bool colours) {
  return colours ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : text + "\n";
}

// What a row reached of what the machine can do.
struct Reached {
  double gb_per_s;
  double gop_per_s;
  double of_read;
  double of_f32;
  double of_int8;  // 0 where the machine's is not known
};

Reached reached(const BenchRow& row, const MachineLimits& limits) {
  const double seconds = row.mean_seconds();
  Reached r{row.work.bytes / seconds / 1e9, row.work.operations / seconds / 1e9, 0, 0, 0};
  r.of_read = r.gb_per_s / limits.read_gb_per_s;
  r.of_f32 = r.gop_per_s / limits.f32_gflop_per_s;
  if (limits.int8_gop_per_s > 0) r.of_int8 = r.gop_per_s / limits.int8_gop_per_s;
  return r;
}

std::string percent(double share) { return share > 0 ? fmt::format("{:.1f} %", 100 * share) : "-"; }

std::string machine_line(const MachineLimits& limits, int threads) {
  const std::string int8 =
      limits.int8_gop_per_s > 0 ? fmt::format(", {:.0f} GOP/s int8 dot", limits.int8_gop_per_s) : "";
  return fmt::format("limits of {}: {:.1f} GB/s read, {:.0f} GFLOP/s f32{}\n", plural(threads, "thread"),
                     limits.read_gb_per_s, limits.f32_gflop_per_s, int8);
}

std::string device_line(const BenchReport& report) {
  return fmt::format("limits of {}: {:.1f} GB/s read, {:.1f} GB/s copied, {:.0f} GFLOP/s f32\n",
                     printable(report.device), report.limits.read_gb_per_s, report.copy_gb_per_s,
                     report.limits.f32_gflop_per_s);
}

Json limits_json(const MachineLimits& limits) {
  return {{"read_gb_per_s", limits.read_gb_per_s},
          {"f32_gflop_per_s", limits.f32_gflop_per_s},
          {"int8_gop_per_s", limits.int8_gop_per_s > 0 ? Json(limits.int8_gop_per_s) : Json(nullptr)}};
}

}  // namespace

std::string BenchRow::name() const {
  std::string text = test.rows > 1 || test.steps == 1 ? fmt::format("prefill {}", test.rows)
                                                      : fmt::format("decode x{}", test.sequences);
  if (test.depth > 0) text += fmt::format(" @ {}", test.depth);
  return text;
}

double BenchRow::mean_seconds() const { return sum(seconds) / static_cast<double>(seconds.size()); }

double BenchRow::mean_rate() const {
  double rates = 0;
  for (const double s : seconds) rates += static_cast<double>(test.tokens()) / s;
  return rates / static_cast<double>(seconds.size());
}

double BenchRow::deviation() const {
  if (seconds.size() < 2) return 0;
  const double mean = mean_rate();
  double squares = 0;
  for (const double s : seconds) squares += std::pow(static_cast<double>(test.tokens()) / s - mean, 2);
  return std::sqrt(squares / static_cast<double>(seconds.size() - 1));
}

std::string as_table(const BenchReport& report, bool colours) {
  std::string table = heading(fmt::format("{:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "test", "tok/s",
                                          "±", "GB/s", "of read", "GFLOP/s", "of f32", "of int8"),
                              colours);
  for (const BenchRow& row : report.rows) {
    const Reached r = reached(row, report.limits);
    table += fmt::format("{:<20} {:>9.1f} {:>9.1f} {:>9.2f} {:>9} {:>9.1f} {:>9} {:>9}\n", row.name(),
                         row.mean_rate(), row.deviation(), r.gb_per_s, percent(r.of_read), r.gop_per_s,
                         percent(r.of_f32), percent(r.of_int8));
  }
  table +=
      "\n" + (report.copy_gb_per_s > 0 ? device_line(report) : machine_line(report.limits, report.threads));
  return table + fmt::format("{} of weights read per token, {} cache, peak memory {}\n",
                             short_bytes(static_cast<double>(report.weight_bytes)), report.cell_type,
                             short_bytes(static_cast<double>(report.peak_memory)));
}

std::string as_csv(const BenchReport& report) {
  std::string csv =
      "test,sequences,rows,depth,steps,tokens_per_second,deviation,gb_per_s,share_of_read,gflop_per_s,"
      "share_of_f32,share_of_int8\n";
  for (const BenchRow& row : report.rows) {
    const Reached r = reached(row, report.limits);
    csv += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.3f},{:.4f},{}\n", row.name(),
                       row.test.sequences, row.test.rows, row.test.depth, row.test.steps, row.mean_rate(),
                       row.deviation(), r.gb_per_s, r.of_read, r.gop_per_s, r.of_f32,
                       r.of_int8 > 0 ? fmt::format("{:.4f}", r.of_int8) : "");
  }
  return csv;
}

Json as_json(const BenchReport& report) {
  Json tests = Json::array();
  for (const BenchRow& row : report.rows) {
    const Reached r = reached(row, report.limits);
    tests.push_back({{"test", row.name()},
                     {"sequences", row.test.sequences},
                     {"rows", row.test.rows},
                     {"depth", row.test.depth},
                     {"steps", row.test.steps},
                     {"seconds", row.seconds},
                     {"tokens_per_second", row.mean_rate()},
                     {"deviation", row.deviation()},
                     {"gb_per_s", r.gb_per_s},
                     {"share_of_read", r.of_read},
                     {"gflop_per_s", r.gop_per_s},
                     {"share_of_f32", r.of_f32},
                     {"share_of_int8", r.of_int8 > 0 ? Json(r.of_int8) : Json(nullptr)}});
  }
  return {{"model", report.model},
          {"weight_type", report.weight_type},
          {"cell_type", report.cell_type},
          {"device", report.device},
          {"threads", report.threads},
          {"weight_bytes", report.weight_bytes},
          {"peak_memory", report.peak_memory},
          {"limits", limits_json(report.limits)},
          {"copy_gb_per_s", report.copy_gb_per_s > 0 ? Json(report.copy_gb_per_s) : Json(nullptr)},
          {"tests", std::move(tests)}};
}

std::string as_table(const std::string& device, const std::vector<MachineRow>& rows, bool colours) {
  std::string table = device + "\n";
  table += heading(
      fmt::format("{:>7} {:>12} {:>14} {:>16}", "threads", "read GB/s", "f32 GFLOP/s", "int8 dot GOP/s"),
      colours);
  for (const MachineRow& row : rows) {
    table +=
        fmt::format("{:>7} {:>12.1f} {:>14.1f} {:>16}\n", row.threads, row.limits.read_gb_per_s,
                    row.limits.f32_gflop_per_s,
                    row.limits.int8_gop_per_s > 0 ? fmt::format("{:.1f}", row.limits.int8_gop_per_s) : "-");
  }
  return table;
}

std::string as_csv(const std::vector<MachineRow>& rows) {
  std::string csv = "threads,read_gb_per_s,f32_gflop_per_s,int8_gop_per_s\n";
  for (const MachineRow& row : rows) {
    csv += fmt::format("{},{:.3f},{:.3f},{}\n", row.threads, row.limits.read_gb_per_s,
                       row.limits.f32_gflop_per_s,
                       row.limits.int8_gop_per_s > 0 ? fmt::format("{:.3f}", row.limits.int8_gop_per_s) : "");
  }
  return csv;
}

Json as_json(const std::string& device, const std::vector<MachineRow>& rows) {
  Json list = Json::array();
  for (const MachineRow& row : rows) {
    Json limits = limits_json(row.limits);
    limits["threads"] = row.threads;
    list.push_back(std::move(limits));
  }
  return {{"device", device}, {"limits", std::move(list)}};
}

}  // namespace qwench::cli
