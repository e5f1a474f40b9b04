#pragma once

#include <cstdint>
#include <string>

#include "cli/command_line.h"
#include "qwench/engine.h"

namespace qwench::cli {

/// --device, --gpu-layers and --vram.
class DeviceFlags {
 public:
  /// `options` has the default device, and gets what was asked for in finish().
  void add_to(CommandLine& line, EngineOptions& options);
  /// Throws UsageError.
  void finish(EngineOptions& options) const;

 private:
  std::optional<int> gpu_layers_;
  std::string memory_;
};

/// "8GB", "7.5GiB", "512M", or bytes, from 1 on. Throws UsageError that names the flag.
uint64_t parse_bytes(const std::string& flag, const std::string& text);

}  // namespace qwench::cli
