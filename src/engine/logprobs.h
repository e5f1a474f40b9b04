#pragma once

#include <span>
#include <utility>
#include <vector>

#include "qwench/engine.h"

namespace qwench {

/// log Σ exp(logits), summed in f64. Throws Error (numeric) where a logit is not finite. `logits` must not be
/// empty.
double log_sum_exp(std::span<const float> logits);

/// log Σ exp(logits), summed in f64. Throws Error (numeric) where a logit is not finite. `logits` must not be
/// empty.
double log_sum_exp(std::span<const float> logits);

/// The log-probability of `id` and of the `top` best tokens (0 <= top <= logits.size()), best first and the
/// lower id first of equals. Taken from the logits as the model gives them, before bias, penalties and
/// temperature, over all of them (padding rows included, as a softmax of the reference does) and summed in
/// f64; only ids below `valid_ids` are listed. Throws Error (numeric) where a logit is not finite.
TokenLogprob token_logprob(std::span<const float> logits, TokenId id, int top, int valid_ids);

/// The alternatives alone: of the next token where none is chosen.
std::vector<std::pair<TokenId, float>> top_logprobs(std::span<const float> logits, int top, int valid_ids);

}  // namespace qwench
