#pragma once

#include <span>
#include <vector>

#include "qwench/engine.h"

namespace qwench {

/// Guesses a sequence's next tokens from the sequence itself: those that followed the latest place where its
/// last tokens stood before, the longest match first. Guesses fewer after wrong ones and more after right
/// ones, as checking a guess is work. One for each completion.
class NgramDraft {
 public:
  explicit NgramDraft(const Speculation& options);

  /// Appends at most `most` guesses to `ids`; returns how many. Takes time in proportion to ids.size().
  int propose(std::vector<TokenId>& ids, int most) const;
  /// Of the tokens proposed last, so many were checked and right.
  void learn(int proposed, int right);

 private:
  Speculation options_;
  int length_;  // guesses to make
};

}  // namespace qwench
