#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "verify/divergence.h"
#include "verify/subject.h"

namespace qwench {

/// A part of a text that is run on its own: the ids [begin, end), of which [first_scored, end) are scored.
/// The ids before only give context.
struct TextWindow {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t first_scored = 0;  ///< > begin

  int64_t scored() const { return end - first_scored; }
};

/// Windows of `context` ids that begin `stride` apart, each scoring what those before it have not: every id
/// but the first is scored once (Hugging Face's "Perplexity of fixed-length models"). 1 <= stride < context,
/// or stride = context for windows that do not overlap, where the first id of each window is not scored.
std::vector<TextWindow> sliding_windows(int64_t length, int64_t context, int64_t stride);

struct Perplexity {
  int64_t scored = 0;
  double mean_nll = 0;        ///< mean negative log-likelihood, in nats
  double standard_error = 0;  ///< of the mean, as if tokens were independent
  double perplexity() const;
};

/// `progress` is called after each window with what there is so far and the share done. The subject needs
/// min(context, ids.size()) positions. Throws Error: invalid_argument for fewer than two ids or an impossible
/// window, numeric.
Perplexity measure_perplexity(Subject& subject, std::span<const TokenId> ids, int64_t context, int64_t stride,
                              const std::function<void(const Perplexity&, double share)>& progress = {});

/// Throws Error (invalid_argument) where the vocabularies differ in size.
void check_comparable(const Subject& a, const Subject& b);

/// The next-token distributions of two models on the same ids, window by window as above. Throws Error:
/// invalid_argument also where the vocabularies differ in size.
Divergence::Summary compare_models(Subject& a, Subject& b, std::span<const TokenId> ids, int64_t context,
                                   int64_t stride,
                                   const std::function<void(const Divergence&, double share)>& progress = {});

}  // namespace qwench
