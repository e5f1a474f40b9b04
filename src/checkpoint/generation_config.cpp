#include "checkpoint/generation_config.h"

#include <fmt/format.h>

#include <cmath>

#include "checkpoint/gguf.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/printable.h"
#include "core/log.h"
#include "qwench/error.h"

namespace qwench {
namespace {

struct Range {
  double low;
  double high;
  bool open;  // low itself is out
};
constexpr Range kTemperature{0.0, 100.0, false};
constexpr Range kTopP{0.0, 1.0, true};
constexpr Range kMinP{0.0, 1.0, false};
constexpr Range kRepetitionPenalty{0.0, 100.0, true};
constexpr Range kPenalty{-2.0, 2.0, false};

std::optional<float> checked(std::optional<double> value, const Range& range, const std::string& label) {
  if (!value) return std::nullopt;
  if (!std::isfinite(*value) || *value < range.low || *value > range.high ||
      (range.open && *value == range.low)) {
    throw Error(ErrorKind::malformed, fmt::format("{} is {}, expected a number {} {} and <= {}", label,
                                                  *value, range.open ? ">" : ">=", range.low, range.high));
  }
  return static_cast<float>(*value);
}

/// top_k of -1 says "all" in some files, which is 0 here.
std::optional<int> checked_top_k(std::optional<int64_t> value, const std::string& label) {
  if (!value) return std::nullopt;
  if (*value < -1 || *value > INT32_MAX) {
    throw Error(ErrorKind::malformed, fmt::format("{} is {}, expected a whole number >= 0", label, *value));
  }
  return static_cast<int>(std::max<int64_t>(*value, 0));
}

/// Settings of transformers that change the text and are not supported, with the value that leaves them off.
void warn_of_unsupported(const JsonFields& fields) {
  struct Setting {
    const char* key;
    double off;
  };
  for (const Setting& s :
       {Setting{"num_beams", 1}, Setting{"num_beam_groups", 1}, Setting{"typical_p", 1},
        Setting{"epsilon_cutoff", 0}, Setting{"eta_cutoff", 0}, Setting{"no_repeat_ngram_size", 0},
        Setting{"encoder_repetition_penalty", 1}, Setting{"penalty_alpha", 0}, Setting{"min_length", 0},
        Setting{"min_new_tokens", 0}, Setting{"guidance_scale", 1}, Setting{"forced_bos_token_id", -1},
        Setting{"forced_eos_token_id", -1}, Setting{"bad_words_ids", -1}, Setting{"suppress_tokens", -1},
        Setting{"begin_suppress_tokens", -1}, Setting{"stop_strings", -1}, Setting{"sequence_bias", -1},
        Setting{"top_h", -1}}) {
    const Json* value = fields.find(s.key);
    if (value == nullptr || (value->is_number() && value->get<double>() == s.off) ||
        (value->is_array() && value->empty()))
      continue;
    log_warning(fmt::format("{}: `{}` is {}, which is not supported and not applied", fields.what(), s.key,
                            printable_json(*value)));
  }
}

}  // namespace

GenerationConfig GenerationConfig::from_json(const Json& json, const std::string& what) {
  const JsonFields fields(json, what);
  const auto number = [&](const char* key, const Range& range) {
    return checked(fields.number(key), range, fmt::format("{}: `{}`", what, key));
  };
  GenerationConfig config;
  config.sampling.temperature = number("temperature", kTemperature);
  config.sampling.top_k =
      checked_top_k(fields.integer("top_k", INT64_MIN, INT64_MAX), fmt::format("{}: `top_k`", what));
  config.sampling.top_p = number("top_p", kTopP);
  config.sampling.min_p = number("min_p", kMinP);
  config.sampling.repetition_penalty = number("repetition_penalty", kRepetitionPenalty);
  config.sampling.presence_penalty = number("presence_penalty", kPenalty);
  config.sampling.frequency_penalty = number("frequency_penalty", kPenalty);
  config.do_sample = fields.boolean("do_sample");
  if (config.do_sample == std::optional(false)) config.sampling.temperature = 0.0f;
  if (const auto limit = fields.integer("max_new_tokens", 0, INT32_MAX))
    config.max_new_tokens = static_cast<int>(*limit);
  config.eos_token_ids = fields.token_ids("eos_token_id");
  config.bos_token_id = fields.token_id("bos_token_id");
  config.pad_token_id = fields.token_id("pad_token_id");
  warn_of_unsupported(fields);
  return config;
}

GenerationConfig GenerationConfig::from_gguf(const GgufFile& file) {
  const auto number = [&](const char* key, const Range& range) {
    return checked(file.number(key), range, fmt::format("{}: {}", file.what(), key));
  };
  GenerationConfig config;
  config.sampling.temperature = number("general.sampling.temp", kTemperature);
  config.sampling.top_k = checked_top_k(file.integer("general.sampling.top_k"),
                                        fmt::format("{}: general.sampling.top_k", file.what()));
  config.sampling.top_p = number("general.sampling.top_p", kTopP);
  config.sampling.min_p = number("general.sampling.min_p", kMinP);
  config.sampling.repetition_penalty = number("general.sampling.penalty_repeat", kRepetitionPenalty);
  for (const char* key : {"general.sampling.xtc_probability", "general.sampling.mirostat"}) {
    if (file.number(key).value_or(0.0) != 0.0) {
      log_warning(fmt::format("{}: {} is set, which is not supported and not applied", file.what(), key));
    }
  }
  return config;
}

}  // namespace qwench
