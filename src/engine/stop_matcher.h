#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qwench {

/// Ends a streamed text before the first stop string in it. What push() and finish() return, joined, is the
/// text cut where the leftmost stop string begins, however the text was chopped into deltas; the stop string
/// itself and the beginning of one that is still unfinished are never let out. Text is held back only while
/// it may yet turn out to be a stop string: at most the longest one less a byte, or more where stop strings
/// overlap. Deltas and stop strings are whole UTF-8 characters, and so is what comes out.
class StopMatcher {
 public:
  /// None of `stops` is empty. With no stops, everything passes through.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Takes the next part and returns what may be shown. Stop strings that end within parts pushed with
  /// `may_stop` false do not count (min_tokens). Once stopped, text is dropped and nothing comes out.
  std::string push(std::string_view delta, bool may_stop = true);

  /// The end of the text: what was held back, unless a stop string begins there.
  std::string finish();

  bool stopped() const { return matched_ != nullptr; }
  /// The stop string that ended the text; null while stopped() is false.
  const std::string* matched() const { return matched_; }

 private:
  std::string release(size_t length);
  size_t find_stop(const std::string** which) const;
  size_t find_unfinished() const;

  std::vector<std::string> stops_;
  std::string held_;
  size_t immune_ = 0;  // stop strings that end within this prefix of held_ do not count
  const std::string* matched_ = nullptr;
};

}  // namespace qwench
