#include "checkpoint/rope_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "checkpoint/printable.h"
#include "core/log.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Type = RopeConfig::Type;
constexpr std::array<std::string_view, 5> kScalingNames{"default", "linear", "dynamic", "yarn", "llama3"};
constexpr const char* kSupported = "default, linear, dynamic, yarn and llama3";

double at_least_one(const JsonFields& fields, const char* key) {
  const auto value = fields.number(key);
  if (!value) throw Error(ErrorKind::malformed, fmt::format("{}: `{}` is missing", fields.what(), key));
  if (*value < 1.0) fields.wrong(key, *fields.find(key), "a number >= 1");
  return *value;
}

std::optional<double> positive(const JsonFields& fields, const char* key) {
  const auto value = fields.number(key);
  if (value && *value <= 0.0) fields.wrong(key, *fields.find(key), "a number > 0");
  return value;
}

double required_positive(const JsonFields& fields, const char* key) {
  const auto value = positive(fields, key);
  if (!value) throw Error(ErrorKind::malformed, fmt::format("{}: `{}` is missing", fields.what(), key));
  return *value;
}

double read_theta(const JsonFields& fields, double otherwise) {
  const auto theta = fields.number("rope_theta");
  if (theta && *theta <= 1.0) fields.wrong("rope_theta", *fields.find("rope_theta"), "a number > 1");
  return theta.value_or(otherwise);
}

void refuse_partial_rotation(const JsonFields& fields) {
  const auto part = fields.number("partial_rotary_factor");
  if (part && *part != 1.0) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: `partial_rotary_factor` is {}; only whole heads can be rotated (1.0)",
                            fields.what(), *part));
  }
}

Type read_type(const JsonFields& fields, const Json& object) {
  auto text = fields.string("rope_type");
  if (!text) text = fields.string("type");
  if (!text) {
    for (const auto& [key, value] : object.items()) {
      if (key != "rope_theta" && key != "partial_rotary_factor" && !value.is_null()) {
        throw Error(ErrorKind::malformed, fmt::format("{}: `rope_type` is missing", fields.what()));
      }
    }
    return Type::standard;
  }
  const auto* found = std::find(kScalingNames.begin(), kScalingNames.end(), *text);
  if (found == kScalingNames.end()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{}: the rope type {} is not supported; {} are", fields.what(),
                            printable(std::string_view(*text)), kSupported));
  }
  return static_cast<Type>(found - kScalingNames.begin());
}

void warn_of_unused(const JsonFields& fields, const Json& object, Type type) {
  std::set<std::string_view> known{"rope_theta", "rope_type", "type", "partial_rotary_factor"};
  if (type != Type::standard) known.insert("factor");
  if (type == Type::yarn || type == Type::llama3) known.insert("original_max_position_embeddings");
  if (type == Type::yarn) {
    known.insert({"beta_fast", "beta_slow", "truncate", "attention_factor", "mscale", "mscale_all_dim"});
  }
  if (type == Type::llama3) known.insert({"low_freq_factor", "high_freq_factor"});
  std::string unused;
  int count = 0;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || known.contains(key)) continue;
    if (key == "mrope_section") {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: `mrope_section` belongs to models with images, which are not supported",
                              fields.what()));
    }
    constexpr int kShown = 4;
    if (count < kShown) unused += (count == 0 ? "" : ", ") + printable(std::string_view(key));
    if (count == kShown) unused += ", ...";
    ++count;
  }
  if (count > 0) {
    log_warning(fmt::format("{}: not used with the rope type {}: {}", fields.what(), name(type), unused));
  }
}

void read_yarn(const JsonFields& fields, RopeConfig& rope) {
  rope.beta_fast = positive(fields, "beta_fast").value_or(rope.beta_fast);
  rope.beta_slow = positive(fields, "beta_slow").value_or(rope.beta_slow);
  if (rope.beta_fast < rope.beta_slow) {
    throw Error(ErrorKind::malformed, fmt::format("{}: `beta_fast` is {}, less than `beta_slow`, which is {}",
                                                  fields.what(), rope.beta_fast, rope.beta_slow));
  }
  rope.truncate = fields.boolean("truncate").value_or(true);
  rope.attention_factor = positive(fields, "attention_factor");
  rope.mscale = fields.number("mscale");
  rope.mscale_all_dim = fields.number("mscale_all_dim");
}

void read_llama3(const JsonFields& fields, RopeConfig& rope) {
  rope.low_freq_factor = required_positive(fields, "low_freq_factor");
  rope.high_freq_factor = required_positive(fields, "high_freq_factor");
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    throw Error(ErrorKind::malformed,
                fmt::format("{}: `high_freq_factor` is {}, which must be more than `low_freq_factor`, {}",
                            fields.what(), rope.high_freq_factor, rope.low_freq_factor));
  }
}

/// One rope_scaling or rope_parameters object; `config` is the object around it.
RopeConfig read_object(const JsonFields& config, const char* key, const Json& object, double theta,
                       int64_t max_position) {
  if (!object.is_object()) config.wrong(key, object, "an object");
  const JsonFields fields(object, fmt::format("{}: `{}`", config.what(), key));
  refuse_partial_rotation(fields);
  RopeConfig rope;
  rope.type = read_type(fields, object);
  rope.theta = read_theta(fields, theta);
  warn_of_unused(fields, object, rope.type);
  if (rope.type == Type::standard) return rope;
  rope.factor = at_least_one(fields, "factor");
  switch (rope.type) {
    case Type::dynamic:
      rope.original_max_position = static_cast<double>(max_position);
      break;
    case Type::yarn:
      rope.original_max_position = positive(fields, "original_max_position_embeddings")
                                       .value_or(positive(config, "original_max_position_embeddings")
                                                     .value_or(static_cast<double>(max_position)));
      read_yarn(fields, rope);
      break;
    case Type::llama3:
      rope.original_max_position = required_positive(fields, "original_max_position_embeddings");
      read_llama3(fields, rope);
      break;
    default:
      break;
  }
  return rope;
}

/// transformers 5 may write one object a layer type; a model here has one RoPE for all layers.
const Json& only_object(const JsonFields& config, const Json& parameters) {
  if (!parameters.is_object() || parameters.empty()) return parameters;
  const Json* first = nullptr;
  for (const auto& [key, value] : parameters.items()) {
    if (!value.is_object()) return parameters;
    if (first != nullptr && *first != value) {
      throw Error(
          ErrorKind::unsupported,
          fmt::format("{}: `rope_parameters` differ by layer type, which is not supported", config.what()));
    }
    first = &value;
  }
  return *first;
}

}  // namespace

std::string_view name(RopeConfig::Type type) noexcept { return kScalingNames[static_cast<size_t>(type)]; }

RopeConfig read_rope_config(const JsonFields& config, int64_t max_position) {
  refuse_partial_rotation(config);
  RopeConfig result;
  result.theta = read_theta(config, result.theta);
  const Json* scaling = config.find("rope_scaling");
  const Json* parameters = config.find("rope_parameters");
  std::optional<RopeConfig> from_scaling;
  if (scaling != nullptr)
    from_scaling = read_object(config, "rope_scaling", *scaling, result.theta, max_position);
  if (parameters != nullptr) {
    const double theta = from_scaling ? from_scaling->theta : result.theta;
    const RopeConfig rope =
        read_object(config, "rope_parameters", only_object(config, *parameters), theta, max_position);
    if (from_scaling && !(rope == *from_scaling)) {
      throw Error(ErrorKind::malformed,
                  fmt::format("{}: `rope_scaling` and `rope_parameters` contradict each other; remove "
                              "the one that is wrong",
                              config.what()));
    }
    return rope;
  }
  return from_scaling.value_or(result);
}

int64_t stretched_positions(const RopeConfig& rope, int64_t max_position) {
  if (rope.type != Type::dynamic && rope.type != Type::yarn) return max_position;
  const double stretched = std::floor(rope.factor * rope.original_max_position);
  return std::max(max_position, static_cast<int64_t>(std::min(stretched, 1e12)));
}

}  // namespace qwench
