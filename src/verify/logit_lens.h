#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "verify/subject.h"

namespace qwench {

/// What the model would say if it ended here: the last position's state after a layer, through the final norm
/// and the head ("logit lens", nostalgebraist 2020).
struct LensRow {
  std::string place;                           ///< "embed_tokens", "layers.3"
  std::vector<std::pair<TokenId, float>> top;  ///< the most probable next tokens and their probabilities
};

/// The embedding and every layer, for the last of `ids`. The subject's max_rows must be at least as many as
/// the ids. Throws Error (invalid_argument, numeric).
std::vector<LensRow> logit_lens(Subject& subject, std::span<const TokenId> ids, int top);

}  // namespace qwench
