#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/jsonl.h"
#include "kernels/machine_limits.h"
#include "verify/speedometer.h"

namespace qwench::cli {

/// What was measured of one case.
struct BenchRow {
  SpeedCase test;
  SpeedWork work;               ///< of one repetition
  std::vector<double> seconds;  ///< of each repetition

  std::string name() const;  ///< "prefill 512", "decode x8 @ 4096"
  double mean_rate() const;  ///< tok/s: the mean of the repetitions' rates
  double deviation() const;  ///< their standard deviation; 0 of a single one
  double mean_seconds() const;
};

struct BenchReport {
  std::string model;
  std::string weight_type;
  std::string cell_type;
  std::string device;
  int threads = 0;
  uint64_t weight_bytes = 0;  ///< read for one token
  uint64_t peak_memory = 0;
  MachineLimits limits;      ///< the device's where one computes
  double copy_gb_per_s = 0;  ///< within a device's memory; 0 on the CPU
  std::vector<BenchRow> rows;
};

/// With `colours`, for a terminal.
std::string as_table(const BenchReport& report, bool colours);
std::string as_csv(const BenchReport& report);
Json as_json(const BenchReport& report);

/// The machine's limits by number of threads.
struct MachineRow {
  int threads;
  MachineLimits limits;
};
std::string as_table(const std::string& device, const std::vector<MachineRow>& rows, bool colours);
std::string as_csv(const std::vector<MachineRow>& rows);
Json as_json(const std::string& device, const std::vector<MachineRow>& rows);

}  // namespace qwench::cli
