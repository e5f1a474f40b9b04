#include "cli/model_flags.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/terminal.h"
#include "core/log.h"

namespace qwench::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path cache_folder() {
  if (const std::string own = environment("QWENCH_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty())
    return std::filesystem::path(xdg) / "qwench";
  return std::filesystem::path(environment("HOME")) / ".cache" / "qwench";
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::filesystem::path default_model() {
  if (const std::string named = environment("QWEN3_MODEL_PATH"); !named.empty()) return named;
  const auto home = std::filesystem::path(environment("HOME")) / "huggingface" / "Qwen3-0.6B";
  if (is_there(home)) return home;
  const auto small = cache_folder() / "models" / "smollm2-135m-instruct-q4_1.gguf";
  if (is_there(small)) return small;
  throw Error(
      ErrorKind::not_found,
      fmt::format(
          "no model was named, QWEN3_MODEL_PATH is not set, and there is none at {} or {}; name a checkpoint "
          "folder or a .gguf file, e.g. qwench run MODEL \"Hello\", or fetch a small model with ./dev "
          "fetch-models",
          home.string(), small.string()));
}

DType parse_dtype(const std::string& flag, const std::string& text) {
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype || is_quantized(*dtype))
    throw UsageError(fmt::format("{} {}: expected f32, f16 or bf16", flag, text));
  return *dtype;
}

}  // namespace

void ModelFlags::add_to(CommandLine& line, Default fallback, bool loads) {
  fallback_ = fallback;
  const std::string help = loads ? "checkpoint folder, .gguf file, or name of a pulled model"
                                 : "checkpoint folder, folder with tokenizer.json, .gguf file, or name of a "
                                   "pulled model";
  line.add_option("MODEL", positional_, help).value_name("");
  line.add_option("-m,--model", named_, "the same, by flag").value_name("MODEL");
  if (loads) {
    const std::string group = "Loading";
    line.add_option("-c,--context", options_.context,
                    "positions a sequence may have; 0: the model's limit or what memory holds")
        .value_name("N")
        .whole_number()
        .group(group);
    line.add_option("-t,--threads", options_.threads, "0: the cores this process may use")
        .value_name("N")
        .whole_number()
        .group(group);
    line.add_option("--dtype", dtype_, "keep weights as f32, f16 or bf16; as stored when absent")
        .value_name("TYPE")
        .group(group);
    line.add_option("--kv-dtype", kv_dtype_, "cells of the KV cache: f32 (default), f16 or bf16")
        .value_name("TYPE")
        .group(group);
    line.add_option("--max-batch", options_.max_batch, "sequences that run at once")
        .value_name("N")
        .whole_number()
        .group(group);
  }
  line.add_flag("-v,--verbose", verbose_, "say more on stderr");
}

void ModelFlags::finish(TextSource* text, bool ids) {
  if (text != nullptr) text->finish();
  if (!named_.empty()) {
    if (!positional_.empty()) {
      if (text == nullptr || (text->positional() && !ids)) {
        throw UsageError(fmt::format("two models are named: {} and -m {}", positional_, named_));
      }
      text->set_positional(text->positional() ? positional_ + " " + *text->positional() : positional_);
    }
    path_ = named_;
  } else if (!positional_.empty()) {
    path_ = positional_;
  } else if (fallback_ == Default::search) {
    path_ = default_model();
  } else if (fallback_ == Default::optional) {
    return;
  } else {
    throw UsageError("no model was named; give a checkpoint folder or a .gguf file, or see --help");
  }
  if (!dtype_.empty()) options_.dtype = parse_dtype("--dtype", dtype_);
  if (!kv_dtype_.empty()) options_.kv_dtype = parse_dtype("--kv-dtype", kv_dtype_);
  if (options_.threads < 0) throw UsageError(fmt::format("-t {}: expected 0 or more", options_.threads));
  if (options_.context < 0) throw UsageError(fmt::format("-c {}: expected 0 or more", options_.context));
  if (options_.max_batch < 1)
    throw UsageError(fmt::format("--max-batch {}: expected 1 or more", options_.max_batch));
  path_ = find_model(path_);
  if (verbose_) set_log_level(LogLevel::detail);
}

std::unique_ptr<Engine> ModelFlags::load() const {
  ProgressLine line;
  EngineOptions options = options_;
  options.progress = [&](double share) {
    line.update("loading " + printable(path_.filename().string()), share);
  };
  return Engine::load(path_, options);
}

std::string short_number(double number) {
  if (number >= 1e9) return fmt::format("{:.1f} B", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.0f} M", number / 1e6);
  return fmt::format("{:.0f}", number);
}

std::string short_bytes(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.1f} GB", bytes / 1e9);
  return fmt::format("{:.0f} MB", bytes / 1e6);
}

std::string banner(const ModelInfo& info) {
  return fmt::format("qwench: {} | {}, {} parameters | {} | {}, {} thread{} | context {}",
                     printable(info.name), info.family, short_number(static_cast<double>(info.parameters)),
                     info.weight_type, info.device, info.threads, info.threads == 1 ? "" : "s", info.context);
}

}  // namespace qwench::cli
