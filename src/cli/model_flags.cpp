#include "cli/model_flags.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/terminal.h"
#include "core/ascii.h"
#include "core/log.h"
#include "core/user_folders.h"
#include "core/utf8.h"
#include "kernels/byte_rows.h"
#include "kernels/quantize.h"

namespace qwench::cli {
namespace {

constexpr int kDraftTokens = 8;

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

/// A sentence or a word, where a model's path was expected.
bool looks_like_text(const std::string& argument) {
  if (argument.find_first_of(" \n\t") != std::string::npos) return true;
  return argument.find('/') == std::string::npos && std::filesystem::path(argument).extension().empty();
}

[[noreturn]] void fail_no_model(const std::string& argument, ModelFlags::Default fallback) {
  constexpr size_t kShown = 60;
  const std::string shown =
      argument.size() > kShown ? to_valid_utf8(argument.substr(0, kShown)) + "..." : argument;
  const char* hint =
      fallback == ModelFlags::Default::search
          ? "if this is the prompt, give it by -p to use the default model, or name a model first"
          : "if this is the text, name a model first";
  throw Error(ErrorKind::not_found,
              fmt::format("there is no model at '{}'; the first argument names the model: {}", shown, hint));
}

}  // namespace

DType parse_kv_dtype(const std::string& flag, const std::string& text) {
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype || (is_quantized(*dtype) && *dtype != DType::q8_0))
    throw UsageError(fmt::format("{} {}: expected f16, f32, bf16 or q8_0", flag, text));
  return *dtype;
}

DType parse_weight_type(const std::string& flag, const std::string& text) {
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype || (is_quantized(*dtype) && !can_quantize(*dtype)))
    throw UsageError(fmt::format("{} {}: expected f32, f16, bf16, q8_0, q4_0 or q4_k", flag, text));
  return *dtype;
}

void ModelFlags::add_to(CommandLine& line, Default fallback, bool loads) {
  fallback_ = fallback;
  const std::string help = loads ? "checkpoint folder, .gguf file, or name of a pulled model"
                                 : "checkpoint folder, folder with tokenizer.json, .gguf file, or name of a "
                                   "pulled model";
  positional_option_ = line.add_option("MODEL", positional_, help).value_name("");
  line.add_option("-m,--model", named_, "the same, by flag").value_name("MODEL");
  if (loads) {
    const std::string group = "Loading";
    line.add_option("-c,--context,--ctx,--ctx-size", options_.context,
                    "positions a sequence may have; 0: the model's limit or what memory holds")
        .value_name("N")
        .whole_number()
        .group(group);
    add_computing_to(line);
    line.add_option(batch_names_, options_.max_batch,
                    "sequences that run at once; 0: up to 64, as memory allows")
        .value_name("N")
        .whole_number()
        .group(group);
    line.add_option("--max-batch-tokens", options_.max_batch_tokens,
                    "tokens computed at once; 0: up to 512, as memory allows")
        .value_name("N")
        .whole_number()
        .group(group);
  }
  line.add_flag("-v,--verbose", verbose_, "say more on stderr");
}

void ModelFlags::add_speculation_to(CommandLine& line) {
  const std::string group = "Loading";
  line.add_option("--speculative", speculative_, "ngram: guess what repeats, for speed; off (default)")
      .value_name("HOW")
      .group(group);
  line.add_option("--draft-tokens", options_.speculation.draft_tokens,
                  "with --speculative: tokens guessed at a time (default 8)")
      .value_name("N")
      .whole_number()
      .group(group);
}

void ModelFlags::add_computing_to(CommandLine& line) {
  const std::string group = "Loading";
  line.add_option("-t,--threads", options_.threads, "0: the cores this process may use")
      .value_name("N")
      .whole_number()
      .group(group);
  line.add_option("--dtype", dtype_,
                  "keep weights as f32, f16, bf16, bf16p (bf16 in fewer bytes, exactly), q8_0, q4_0 or q4_k; "
                  "as stored when absent")
      .value_name("TYPE")
      .group(group);
  line.add_option("--kv-dtype", kv_dtype_,
                  options_.kv_dtype ? "cells of the KV cache: f32 (default), f16, bf16 or q8_0"
                                    : "cells of the KV cache: f16, f32, bf16 or q8_0; when absent f16, or "
                                      "f32 where weights are f32")
      .value_name("TYPE")
      .group(group);
  line.add_option(
          "--activation-bits", activation_bits_,
          "of what weights are multiplied with on the CPU: 16, as exact as weights in f32 (default), or "
          "8, faster for weights of 4 and 5 bits, with VNNI for q8_0, with AMX for bf16 and f16")
      .value_name("N")
      .whole_number()
      .group(group);
  device_.add_to(line, options_);
}

void ModelFlags::finish(TextSource* text, bool ids) {
  if (text != nullptr) text->finish();
  const bool positional = positional_option_ && positional_option_->given();
  if (!named_.empty()) {
    if (positional) {
      if (text == nullptr)
        throw UsageError(fmt::format("two models are named: {} and -m {}", positional_, named_));
      if (text->positional() && !ids) {
        throw UsageError(
            fmt::format("with -m {} there is room for one text, but there are two arguments, {} and {}: "
                        "put the text in quotes, or leave out -m",
                        named_, positional_, *text->positional()));
      }
      text->set_positional(text->positional() ? positional_ + " " + *text->positional() : positional_);
    }
    path_ = named_;
  } else if (positional) {
    if (positional_.empty()) throw UsageError("the first argument, which names the model, is empty");
    path_ = positional_;
  } else if (fallback_ == Default::search) {
    path_ = default_model();
  } else if (fallback_ == Default::optional) {
    return;
  } else {
    throw UsageError("no model was named; give a checkpoint folder or a .gguf file, or see --help");
  }
  if (ascii_lower(dtype_) == "bf16p") {
    options_.dtype = DType::bf16;
    options_.packed_bf16 = true;
  } else if (!dtype_.empty()) {
    options_.dtype = parse_weight_type("--dtype", dtype_);
  }
  if (!kv_dtype_.empty()) options_.kv_dtype = parse_kv_dtype("--kv-dtype", kv_dtype_);
  if (activation_bits_) {
    if (*activation_bits_ != 8 && *activation_bits_ != 16)
      throw UsageError(fmt::format("--activation-bits {}: expected 8 or 16", *activation_bits_));
    set_activation_bits(*activation_bits_);
  }
  if (options_.threads < 0) throw UsageError(fmt::format("-t {}: expected 0 or more", options_.threads));
  if (options_.context < 0) throw UsageError(fmt::format("-c {}: expected 0 or more", options_.context));
  if (options_.max_batch < 0)
    throw UsageError(fmt::format("--max-batch {}: expected 0 or more", options_.max_batch));
  if (options_.max_batch_tokens < 0)
    throw UsageError(fmt::format("--max-batch-tokens {}: expected 0 or more", options_.max_batch_tokens));
  finish_speculation();
  device_.finish(options_);
  if (!is_there(path_) && text != nullptr && named_.empty() && positional && !text->given() && !ids &&
      looks_like_text(positional_))
    fail_no_model(positional_, fallback_);
  path_ = find_model(path_);
  if (verbose_) set_log_level(LogLevel::detail);
}

void ModelFlags::finish_speculation() {
  int& draft = options_.speculation.draft_tokens;
  if (speculative_.empty() || speculative_ == "off") {
    if (draft != 0) throw UsageError("--draft-tokens needs --speculative ngram");
  } else if (speculative_ != "ngram") {
    throw UsageError(fmt::format("--speculative {}: expected ngram or off", speculative_));
  } else if (draft == 0) {
    draft = kDraftTokens;
  } else if (draft < 1 || draft > 64) {
    throw UsageError(fmt::format("--draft-tokens {}: expected 1 to 64", draft));
  }
}

std::unique_ptr<Engine> ModelFlags::load(bool quick_start) const {
  ProgressLine line;
  EngineOptions options = options_;
  options.quick_start = quick_start;
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

std::string plural(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
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
