#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/device_flags.h"
#include "cli/text_source.h"
#include "qwench/engine.h"

namespace qwench::cli {

/// Which model, and how it is loaded.
class ModelFlags {
 public:
  enum class Default {
    none,      ///< a model must be named
    optional,  ///< without one, path() is empty
    search,    ///< QWEN3_MODEL_PATH, ~/huggingface/Qwen3-0.6B, the model that ./dev fetch-models keeps
  };

  /// Before add_to: names and default of the flag for the number of sequences.
  void set_batch_flag(const std::string& names, int fallback) {
    batch_names_ = names;
    options_.max_batch = fallback;
  }
  /// Before add_to and add_computing_to, in commands whose numbers are compared with a reference's: cells of
  /// the KV cache are f32 and the CPU computes unless asked for otherwise.
  void keep_exact_cells() {
    options_.kv_dtype = DType::f32;
    options_.device = "cpu";
  }
  /// Adds the positional MODEL and -m; with `loads`, the flags about loading too.
  void add_to(CommandLine& line, Default fallback, bool loads);
  /// -t, --dtype, --kv-dtype and --device: those of the flags about loading that say how to compute.
  void add_computing_to(CommandLine& line);
  /// --speculative and what belongs to it, where a command generates.
  void add_speculation_to(CommandLine& line);
  /// To be called once after parsing. With -m, the first positional is the text's, or with `ids` its first
  /// word. Throws UsageError, Error (not_found).
  void finish(TextSource* text = nullptr, bool ids = false);

  const std::filesystem::path& path() const { return path_; }
  bool verbose() const { return verbose_; }
  const EngineOptions& options() const { return options_; }

  /// Loads, with a progress line on a terminal; quick_start is EngineOptions's.
  std::unique_ptr<Engine> load(bool quick_start = false) const;

 private:
  void finish_speculation();

  Default fallback_ = Default::none;
  std::string batch_names_ = "--max-batch";
  std::optional<Option> positional_option_;
  std::string positional_;
  std::string named_;
  std::string dtype_;
  std::string kv_dtype_;
  std::optional<int> activation_bits_;
  std::string speculative_;
  bool verbose_ = false;
  DeviceFlags device_;
  EngineOptions options_;
  std::filesystem::path path_;
};

/// A type of cells of the KV cache: f32, f16, bf16 or q8_0. Throws UsageError that names the flag.
DType parse_kv_dtype(const std::string& flag, const std::string& text);
/// A type to keep weights in, which may be quantized as they are loaded. Throws UsageError that names the
/// flag.
DType parse_weight_type(const std::string& flag, const std::string& text);

/// "qwench: Qwen3-0.6B | qwen3, 596 M parameters | bf16 | CPU (AVX2), 8 threads | context 40960"
std::string banner(const ModelInfo& info);

/// "1.5 B", "135 M"
std::string short_number(double number);

/// "1 token", "2 tokens"
std::string plural(int64_t count, std::string_view what);

/// "1.2 GB", "180 MB"
std::string short_bytes(double bytes);

}  // namespace qwench::cli
