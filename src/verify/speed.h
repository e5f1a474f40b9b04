#pragma once

#include <span>

#include "verify/subject.h"

namespace qwench {

/// Seconds of greedy decoding, with and without the KV cache.
struct DecodeSpeed {
  double prefill_seconds = 0;        ///< one pass over the prompt, with the next token
  double with_cache_seconds = 0;     ///< prompt and all new tokens
  double without_cache_seconds = 0;  ///< the same, computing the whole sequence for each new token
};

/// Measures what a reference's timings hold. The weights are read once before. Throws Error
/// (invalid_argument).
DecodeSpeed measure_speed(Subject& subject, std::span<const TokenId> prompt, int new_tokens);

}  // namespace qwench
