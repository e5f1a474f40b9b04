#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "checkpoint/gguf.h"
#include "checkpoint/printable.h"
#include "checkpoint/rope_config.h"
#include "qwench/error.h"

namespace qwench {
namespace {

using Type = RopeConfig::Type;

class RopeKeys {
 public:
  RopeKeys(const GgufFile& file, const std::string& architecture)
      : file_(file), prefix_(architecture + ".rope.") {}

  const GgufFile& file() const { return file_; }
  std::string key(const char* end) const { return prefix_ + end; }

  std::optional<double> positive(const char* end, double least = 0.0) const {
    const auto value = file_.number(key(end));
    if (value && !(std::isfinite(*value) && (least > 0.0 ? *value >= least : *value > 0.0))) {
      fail(ErrorKind::malformed, fmt::format("{} is {}, expected a finite number {} {}", key(end), *value,
                                             least > 0.0 ? ">=" : ">", least));
    }
    return value;
  }

  [[noreturn]] void fail(ErrorKind kind, const std::string& message) const {
    throw Error(kind, fmt::format("{}: {}", file_.what(), message));
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

Type read_type(const RopeKeys& keys) {
  const auto text = keys.file().string(keys.key("scaling.type"));
  if (text == "none") return Type::standard;
  if (text == "linear") return Type::linear;
  if (text == "yarn") return Type::yarn;
  if (text) {
    keys.fail(ErrorKind::unsupported, fmt::format("{} is {}; none, linear and yarn are supported",
                                                  keys.key("scaling.type"), printable(*text)));
  }
  // A factor without a type is linear scaling, as in files from before the types.
  return keys.file().find(keys.key("scaling.factor")) || keys.file().find(keys.key("scale_linear"))
             ? Type::linear
             : Type::standard;
}

/// rope_freqs.weight, F32 [head_dim / 2]
std::vector<float> read_freq_factors(const RopeKeys& keys, int head_dim) {
  const GgufTensor* tensor = keys.file().tensor("rope_freqs.weight");
  if (tensor == nullptr) return {};
  const std::vector<int64_t> shape{head_dim / 2};
  if (tensor->dtype != DType::f32 || tensor->shape != shape) {
    keys.fail(ErrorKind::malformed,
              fmt::format("tensor \"rope_freqs.weight\" must be F32 of {} numbers", head_dim / 2));
  }
  std::vector<float> factors(static_cast<size_t>(head_dim / 2));
  std::memcpy(factors.data(), tensor->bytes.data(), tensor->bytes.size());
  for (const float factor : factors) {
    if (!(std::isfinite(factor) && factor > 0.0f)) {
      keys.fail(ErrorKind::malformed,
                fmt::format("tensor \"rope_freqs.weight\" holds {}, expected finite numbers > 0", factor));
    }
  }
  return factors;
}

}  // namespace

RopeConfig read_rope_config(const GgufFile& file, const std::string& architecture, int64_t max_position,
                            int head_dim) {
  const RopeKeys keys(file, architecture);
  RopeConfig rope;
  rope.theta = keys.positive("freq_base").value_or(rope.theta);
  if (rope.theta <= 1.0) {
    keys.fail(ErrorKind::malformed,
              fmt::format("{} is {}, expected a number > 1", keys.key("freq_base"), rope.theta));
  }
  if (const auto dimensions = file.integer(keys.key("dimension_count"));
      dimensions && *dimensions != head_dim) {
    keys.fail(ErrorKind::unsupported,
              fmt::format("{} is {}, but heads have {} dimensions; only whole heads can be rotated",
                          keys.key("dimension_count"), *dimensions, head_dim));
  }
  rope.freq_factors = read_freq_factors(keys, head_dim);
  rope.type = read_type(keys);
  if (rope.type == Type::standard) return rope;

  auto factor = keys.positive("scaling.factor", 1.0);
  if (!factor) factor = keys.positive("scale_linear", 1.0);
  if (!factor) keys.fail(ErrorKind::malformed, fmt::format("{} is missing", keys.key("scaling.factor")));
  rope.factor = *factor;
  if (rope.type == Type::linear) {
    if (rope.factor == 1.0) rope.type = Type::standard;
    return rope;
  }
  rope.original_max_position =
      keys.positive("scaling.original_context_length").value_or(static_cast<double>(max_position));
  rope.beta_fast = keys.positive("scaling.yarn_beta_fast").value_or(rope.beta_fast);
  rope.beta_slow = keys.positive("scaling.yarn_beta_slow").value_or(rope.beta_slow);
  if (rope.beta_fast < rope.beta_slow) {
    keys.fail(ErrorKind::malformed, fmt::format("{} is less than {}", keys.key("scaling.yarn_beta_fast"),
                                                keys.key("scaling.yarn_beta_slow")));
  }
  for (const char* other : {"scaling.yarn_ext_factor", "scaling.yarn_attn_factor", "scaling.alpha"}) {
    const auto value = file.number(keys.key(other));
    // -1 asks for the usual value, 1 is it.
    if (value && *value != 1.0 && *value != -1.0 &&
        !(*value == 0.0 && std::string_view(other) == "scaling.alpha")) {
      keys.fail(ErrorKind::unsupported,
                fmt::format("{} is {}, which is not supported", keys.key(other), *value));
    }
  }
  if (const auto multiplier = file.number(keys.key("scaling.yarn_log_multiplier"));
      multiplier && *multiplier != 0.0) {
    keys.fail(ErrorKind::unsupported, fmt::format("{} is {}, which is not supported",
                                                  keys.key("scaling.yarn_log_multiplier"), *multiplier));
  }
  // In a GGUF file attn_factor multiplies YaRN's own factor; in a config.json it takes its place.
  if (const auto attention = keys.positive("scaling.attn_factor")) {
    rope.attention_factor = *attention * (0.1 * std::log(rope.factor) + 1.0);
  }
  return rope;
}

}  // namespace qwench
