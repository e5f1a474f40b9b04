#include "engine/sampling_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "core/utf8.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr size_t kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 4096;
constexpr size_t kMaxLogitBias = 1 << 16;

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

/// A value as an error message shows it: short, on one line.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = std::string(value.type_name());
  return text;
}

[[noreturn]] void fail_type(std::string_view name, const Json& value, std::string_view expected) {
  fail(fmt::format("{}: found {}, expected {}", name, shown(value), expected));
}

float read_float(std::string_view name, const Json& value) {
  if (!value.is_number()) fail_type(name, value, "a number");
  const double number = value.get<double>();
  if (!(std::abs(number) <= std::numeric_limits<float>::max()))
    fail_type(name, value, "a number within the range of a float");
  return static_cast<float>(number);
}

int read_int(std::string_view name, const Json& value) {
  if (value.is_number_float()) {  // 50.0 and 1e3 are whole too
    const double number = value.get<double>();
    if (number != std::trunc(number) || std::abs(number) > std::numeric_limits<int>::max())
      fail_type(name, value, "a whole number");
    return static_cast<int>(number);
  }
  if (!value.is_number_integer()) fail_type(name, value, "a whole number");
  const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= std::numeric_limits<int>::max()
                                               : value.get<int64_t>() >= std::numeric_limits<int>::min() &&
                                                     value.get<int64_t>() <= std::numeric_limits<int>::max();
  if (!fits) fail_type(name, value, "a whole number of at most 31 bits");
  return value.get<int>();
}

uint64_t read_seed(std::string_view name, const Json& value) {
  if (!value.is_number_unsigned()) fail_type(name, value, "a whole number from 0 to 2^64 - 1");
  return value.get<uint64_t>();
}

bool read_bool(std::string_view name, const Json& value) {
  if (!value.is_boolean()) fail_type(name, value, "true or false");
  return value.get<bool>();
}

std::vector<std::pair<TokenId, float>> read_logit_bias(std::string_view name, const Json& value) {
  std::vector<std::pair<TokenId, float>> bias;
  if (value.is_object()) {
    for (const auto& [key, number] : value.items()) {
      TokenId id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc{} || end != key.data() + key.size() || id < 0) {
        fail(fmt::format("{}: key \"{}\" is not a token id", name, to_valid_utf8(key.substr(0, 40))));
      }
      bias.emplace_back(id, read_float(name, number));
    }
  } else if (value.is_array()) {
    for (const Json& pair : value) {
      if (!pair.is_array() || pair.size() != 2) fail_type(name, pair, "[id, bias]");
      bias.emplace_back(read_int(name, pair[0]), read_float(name, pair[1]));
    }
  } else {
    fail_type(name, value, "an object of token ids, e.g. {\"42\": -1.5}");
  }
  return bias;
}

template <typename T>
void check_range(std::string_view name, T value, bool ok, std::string_view range) {
  if (!ok) fail(fmt::format("{} is {}, expected {}", name, value, range));
}

template <typename T>
std::optional<T> first_of(const std::optional<T>& stronger, const std::optional<T>& weaker) {
  return stronger ? stronger : weaker;
}

}  // namespace

SamplingOptions SamplingOptions::over(const SamplingOptions& weaker) const {
  SamplingOptions merged;
  merged.temperature = first_of(temperature, weaker.temperature);
  merged.top_k = first_of(top_k, weaker.top_k);
  merged.top_p = first_of(top_p, weaker.top_p);
  merged.min_p = first_of(min_p, weaker.min_p);
  merged.repetition_penalty = first_of(repetition_penalty, weaker.repetition_penalty);
  merged.presence_penalty = first_of(presence_penalty, weaker.presence_penalty);
  merged.frequency_penalty = first_of(frequency_penalty, weaker.frequency_penalty);
  merged.logit_bias = first_of(logit_bias, weaker.logit_bias);
  merged.seed = first_of(seed, weaker.seed);
  return merged;
}

SamplingParams SamplingOptions::resolve() const {
  SamplingParams p;
  p.temperature = temperature.value_or(p.temperature);
  p.top_k = top_k.value_or(p.top_k);
  p.top_p = top_p.value_or(p.top_p);
  p.min_p = min_p.value_or(p.min_p);
  p.repetition_penalty = repetition_penalty.value_or(p.repetition_penalty);
  p.presence_penalty = presence_penalty.value_or(p.presence_penalty);
  p.frequency_penalty = frequency_penalty.value_or(p.frequency_penalty);
  p.logit_bias = logit_bias.value_or(p.logit_bias);
  p.seed = seed;
  // Written so that NaN fails each of them.
  check_range("temperature", p.temperature, p.temperature >= 0 && p.temperature <= 100, "0 (greedy) to 100");
  check_range("top_k", p.top_k, p.top_k >= 0, "0 (keep all) or more");
  check_range("top_p", p.top_p, p.top_p > 0 && p.top_p <= 1, "more than 0 and at most 1");
  check_range("min_p", p.min_p, p.min_p >= 0 && p.min_p <= 1, "0 to 1");
  check_range("repetition_penalty", p.repetition_penalty,
              p.repetition_penalty > 0 && std::isfinite(p.repetition_penalty), "more than 0 (1 is off)");
  check_range("presence_penalty", p.presence_penalty, p.presence_penalty >= -2 && p.presence_penalty <= 2,
              "-2 to 2");
  check_range("frequency_penalty", p.frequency_penalty, p.frequency_penalty >= -2 && p.frequency_penalty <= 2,
              "-2 to 2");
  if (p.logit_bias.size() > kMaxLogitBias) {
    fail(fmt::format("logit_bias names {} tokens, expected at most {}", p.logit_bias.size(), kMaxLogitBias));
  }
  for (const auto& [id, bias] : p.logit_bias) {
    check_range("logit_bias: the token id", id, id >= 0, "0 or more");
    check_range(fmt::format("logit_bias of token {}", id), bias, bias >= -100 && bias <= 100, "-100 to 100");
  }
  return p;
}

bool read_sampling_field(std::string_view name, const Json& value, SamplingOptions& options) {
  const auto put = [&](auto& member, auto read) {
    if (value.is_null()) {
      member.reset();
    } else {
      member = read(name, value);
    }
    return true;
  };
  if (name == "temperature") return put(options.temperature, read_float);
  if (name == "top_k") return put(options.top_k, read_int);
  if (name == "top_p") return put(options.top_p, read_float);
  if (name == "min_p") return put(options.min_p, read_float);
  if (name == "repetition_penalty") return put(options.repetition_penalty, read_float);
  if (name == "presence_penalty") return put(options.presence_penalty, read_float);
  if (name == "frequency_penalty") return put(options.frequency_penalty, read_float);
  if (name == "logit_bias") return put(options.logit_bias, read_logit_bias);
  if (name == "seed") return put(options.seed, read_seed);
  return false;
}

bool read_stop_field(std::string_view name, const Json& value, StopParams& stop) {
  const bool open = value.is_null();
  if (name == "stop") {
    if (open) return true;
    stop.stop.clear();
    if (value.is_string()) {
      stop.stop.push_back(value.get<std::string>());
    } else if (value.is_array()) {
      for (const Json& text : value) {
        if (!text.is_string()) fail_type(name, text, "a string");
        stop.stop.push_back(text.get<std::string>());
      }
    } else {
      fail_type(name, value, "a string or an array of strings");
    }
  } else if (name == "stop_token_ids") {
    if (open) return true;
    if (!value.is_array()) fail_type(name, value, "an array of token ids");
    stop.stop_token_ids.clear();
    for (const Json& id : value) stop.stop_token_ids.push_back(read_int(name, id));
  } else if (name == "ignore_eos") {
    if (!open) stop.ignore_eos = read_bool(name, value);
  } else if (name == "max_tokens") {
    if (!open) stop.max_tokens = read_int(name, value);
  } else if (name == "min_tokens") {
    if (!open) stop.min_tokens = read_int(name, value);
  } else {
    return false;
  }
  return true;
}

void check(const StopParams& stop) {
  if (stop.stop.size() > kMaxStopStrings) {
    fail(fmt::format("stop holds {} strings, expected at most {}", stop.stop.size(), kMaxStopStrings));
  }
  for (const std::string& text : stop.stop) {
    if (text.empty()) fail("stop holds an empty string, which would end every text at once");
    if (text.size() > kMaxStopBytes)
      fail(fmt::format("stop holds a string of {} bytes, expected at most {}", text.size(), kMaxStopBytes));
    if (!is_valid_utf8(text)) fail("stop holds a string that is not UTF-8");
  }
  for (const TokenId id : stop.stop_token_ids)
    check_range("stop_token_ids: the id", id, id >= 0, "0 or more");
  check_range("max_tokens", stop.max_tokens, stop.max_tokens >= -1,
              "0 or more, or -1 for what generation_config.json says, else what the context holds");
  check_range("min_tokens", stop.min_tokens, stop.min_tokens >= 0, "0 or more");
  if (stop.max_tokens >= 0 && stop.min_tokens > stop.max_tokens) {
    fail(fmt::format("min_tokens is {}, more than max_tokens, {}", stop.min_tokens, stop.max_tokens));
  }
}

Json to_json(const SamplingParams& params) {
  // Through text, so that 0.7f is 0.7 and not 0.699999988079071.
  const auto number = [](float value) { return Json::parse(fmt::format("{}", value)); };
  Json bias = Json::object();
  for (const auto& [id, value] : params.logit_bias) bias[std::to_string(id)] = number(value);
  return Json{{"temperature", number(params.temperature)},
              {"top_k", params.top_k},
              {"top_p", number(params.top_p)},
              {"min_p", number(params.min_p)},
              {"repetition_penalty", number(params.repetition_penalty)},
              {"presence_penalty", number(params.presence_penalty)},
              {"frequency_penalty", number(params.frequency_penalty)},
              {"logit_bias", std::move(bias)},
              {"seed", params.seed ? Json(*params.seed) : Json(nullptr)}};
}

void add_to_json(const StopParams& stop, Json& object) {
  object["stop"] = stop.stop;
  object["stop_token_ids"] = stop.stop_token_ids;
  object["ignore_eos"] = stop.ignore_eos;
  object["max_tokens"] = stop.max_tokens;
  object["min_tokens"] = stop.min_tokens;
}

void draw_seed(SamplingOptions& options, const SamplingOptions& weaker) {
  const SamplingParams params = options.over(weaker).resolve();
  if (params.temperature > 0 && !params.seed) options.seed = std::random_device()();
}

std::string describe(const SamplingParams& params) {
  std::string text;
  const auto add = [&](bool on, std::string_view name, auto value) {
    if (on) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  const bool greedy = params.temperature == 0;
  if (greedy) text = "greedy";
  add(!greedy, "temperature", params.temperature);
  add(!greedy && params.top_k > 0, "top_k", params.top_k);
  add(!greedy && params.top_p < 1, "top_p", params.top_p);
  add(!greedy && params.min_p > 0, "min_p", params.min_p);
  add(params.repetition_penalty != 1, "repetition_penalty", params.repetition_penalty);
  add(params.presence_penalty != 0, "presence_penalty", params.presence_penalty);
  add(params.frequency_penalty != 0, "frequency_penalty", params.frequency_penalty);
  add(!params.logit_bias.empty(), "logit_bias of tokens:", params.logit_bias.size());
  if (params.seed) add(!greedy, "seed", *params.seed);
  return text;
}

}  // namespace qwench
