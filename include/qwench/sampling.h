#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace qwench {

using TokenId = int32_t;

/// How the next token is drawn from the logits, in the order in which the steps are applied: logit_bias,
/// repetition_penalty (tokens of prompt and output; Keskar et al. 2019, arXiv:1909.05858), frequency_penalty
/// and presence_penalty (tokens of the output; OpenAI API reference), temperature, top_k, top_p (Holtzman et
/// al. 2019, arXiv:1904.09751), min_p (Nguyen et al. 2024, arXiv:2407.01082).
struct SamplingParams {
  float temperature = 0.7f;  ///< 0 is greedy; [0, 100]
  int top_k = 20;            ///< keep the k best (ties at the k-th all stay); 0 keeps all
  float top_p = 0.8f;        ///< keep the smallest set whose probability reaches top_p; (0, 1]
  float min_p = 0.0f;        ///< keep tokens with at least min_p times the best one's probability; [0, 1]
  float repetition_penalty = 1.0f;                         ///< > 0; 1 is off
  float presence_penalty = 0.0f;                           ///< [-2, 2]
  float frequency_penalty = 0.0f;                          ///< [-2, 2]
  std::vector<std::pair<TokenId, float>> logit_bias = {};  ///< added to these logits; [-100, 100]
  std::optional<uint64_t> seed = {};  ///< same seed, same text; drawn from the system when absent
};

/// When a generation ends and what is reported of it.
struct StopParams {
  std::vector<std::string> stop = {};  ///< the text ends before the first of these; at most 16, none empty
  std::vector<TokenId> stop_token_ids = {};  ///< added to the model's own stop ids
  bool ignore_eos = false;                   ///< the model's own stop ids do not end the text
  /// At least 0 and at most so many as the context holds; -1: what generation_config.json says, else what the
  /// context holds.
  int max_tokens = -1;
  int min_tokens = 0;  ///< stop ids are not drawn, and stop strings do not end, before this many
};

/// The same settings where each may be left open: what a request, a flag or a generation_config.json says.
/// A request goes before a flag, a flag before generation_config.json, and that before the defaults above.
struct SamplingOptions {
  std::optional<float> temperature = {};
  std::optional<int> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<float> repetition_penalty = {};
  std::optional<float> presence_penalty = {};
  std::optional<float> frequency_penalty = {};
  std::optional<std::vector<std::pair<TokenId, float>>> logit_bias = {};
  std::optional<uint64_t> seed = {};

  /// These settings, and `weaker`'s where these leave one open.
  SamplingOptions over(const SamplingOptions& weaker) const;
  /// Throws Error (invalid_argument) that names the field, the value and its range.
  SamplingParams resolve() const;
};

}  // namespace qwench
