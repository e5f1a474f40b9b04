#include "engine/ngram_draft.h"

#include <algorithm>

namespace qwench {
namespace {

/// The place after the latest earlier occurrence of the last tokens; 0 where fewer than `least` agree. Of
/// those that agree in more tokens, up to `most`, the latest.
size_t place_after_match(std::span<const TokenId> ids, size_t least, size_t most) {
  size_t best = 0;
  size_t longest = least - 1;
  const TokenId last = ids.back();
  for (size_t i = ids.size() - 1; i-- > 0;) {
    if (ids[i] != last) continue;
    size_t equal = 1;
    while (equal < most && equal <= i && ids[i - equal] == ids[ids.size() - 1 - equal]) ++equal;
    if (equal <= longest) continue;
    longest = equal;
    best = i + 1;
    if (longest == most) break;
  }
  return best;
}

}  // namespace

NgramDraft::NgramDraft(const Speculation& options) : options_(options), length_(options.draft_tokens) {}

int NgramDraft::propose(std::vector<TokenId>& ids, int most) const {
  most = std::min(most, length_);
  if (most <= 0 || ids.empty()) return 0;
  const size_t place = place_after_match(ids, static_cast<size_t>(options_.min_match),
                                         static_cast<size_t>(options_.max_match));
  if (place == 0) return 0;
  // A match that overlaps the end goes round and round.
  for (int i = 0; i < most; ++i) ids.push_back(ids[place + static_cast<size_t>(i)]);
  return most;
}

void NgramDraft::learn(int proposed, int right) {
  if (proposed == 0) return;
  length_ = right == proposed ? std::min(options_.draft_tokens, 2 * length_) : std::max(1, right + 1);
}

}  // namespace qwench
