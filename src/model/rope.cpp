#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace qwench {
namespace {

// Frequencies are f32 in the official implementation, and so are here the steps that round.
std::vector<float> base_frequencies(double theta, int head_dim) {
  std::vector<float> inv_freq(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    inv_freq[i] = 1.0f / power;
  }
  return inv_freq;
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

float yarn_attention_factor(const RopeConfig& config) {
  if (config.attention_factor) return static_cast<float>(*config.attention_factor);
  if (config.mscale && config.mscale_all_dim && *config.mscale != 0 && *config.mscale_all_dim != 0) {
    return static_cast<float>(yarn_mscale(config.factor, *config.mscale) /
                              yarn_mscale(config.factor, *config.mscale_all_dim));
  }
  return static_cast<float>(yarn_mscale(config.factor, 1.0));
}

// Between the dimension that turns beta_fast times over the original context, which keeps its frequency, and
// the one that turns beta_slow times, which is interpolated, a linear ramp (YaRN, section 3.2).
void scale_yarn(const RopeConfig& config, int head_dim, std::vector<float>& inv_freq) {
  const auto dimension_of = [&](double rotations) {
    return head_dim * std::log(config.original_max_position / (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(config.theta));
  };
  double low = dimension_of(config.beta_fast);
  double high = dimension_of(config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const auto ramp = static_cast<float>(std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0));
    const float keep = 1.0f - ramp;
    const float extrapolated = inv_freq[i];
    const float interpolated = 1.0f / (static_cast<float>(config.factor) * (1.0f / inv_freq[i]));
    inv_freq[i] = interpolated * (1.0f - keep) + extrapolated * keep;
  }
}

// Long wavelengths are divided by the factor, short ones kept, those between blended
// (Llama 3.1, transformers' modeling_rope_utils).
void scale_llama3(const RopeConfig& config, std::vector<float>& inv_freq) {
  const double low_wavelength = config.original_max_position / config.low_freq_factor;
  const double high_wavelength = config.original_max_position / config.high_freq_factor;
  for (float& frequency : inv_freq) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength > low_wavelength) {
      frequency = static_cast<float>(frequency / config.factor);
    } else if (wavelength >= high_wavelength) {
      const double smooth = (config.original_max_position / wavelength - config.low_freq_factor) /
                            (config.high_freq_factor - config.low_freq_factor);
      frequency = static_cast<float>((1.0 - smooth) * frequency / config.factor + smooth * frequency);
    }
  }
}

}  // namespace

RopeFrequencies::RopeFrequencies(const RopeConfig& config, int head_dim)
    : config_(config), head_dim_(head_dim), inv_freq_(base_frequencies(config.theta, head_dim)) {
  switch (config.type) {
    case RopeConfig::Type::standard:
    case RopeConfig::Type::dynamic:
      break;
    case RopeConfig::Type::linear:
      for (float& frequency : inv_freq_) frequency /= static_cast<float>(config.factor);
      break;
    case RopeConfig::Type::yarn:
      scale_yarn(config, head_dim, inv_freq_);
      attention_factor_ = yarn_attention_factor(config);
      break;
    case RopeConfig::Type::llama3:
      scale_llama3(config, inv_freq_);
      break;
  }
  for (size_t i = 0; i < std::min(inv_freq_.size(), config.freq_factors.size()); ++i) {
    inv_freq_[i] /= config.freq_factors[i];
  }
}

double RopeFrequencies::dynamic_theta(int length) const {
  const double stretch = config_.factor * length / config_.original_max_position - (config_.factor - 1.0);
  return config_.theta * std::pow(stretch, static_cast<double>(head_dim_) / (head_dim_ - 2));
}

void RopeFrequencies::fill(int position, int prompt_length, std::span<float> cos,
                           std::span<float> sin) const {
  const int length = std::max(prompt_length, position + 1);
  const bool stretched = config_.type == RopeConfig::Type::dynamic && length > config_.original_max_position;
  const double theta = stretched ? dynamic_theta(length) : 0.0;
  for (size_t i = 0; i < inv_freq_.size(); ++i) {
    float frequency = inv_freq_[i];
    if (stretched) {
      const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim_);
      frequency = 1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    }
    // The angle is rounded to f32 as in the official implementation: at large positions this rounding is most
    // of what two correct implementations differ by.
    const float angle = static_cast<float>(position) * frequency;
    cos[i] = static_cast<float>(std::cos(static_cast<double>(angle))) * attention_factor_;
    sin[i] = static_cast<float>(std::sin(static_cast<double>(angle))) * attention_factor_;
  }
}

}  // namespace qwench
