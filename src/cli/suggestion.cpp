#include "cli/suggestion.h"

#include <algorithm>

namespace qwench::cli {

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table are enough: a swap looks two rows back.
  std::vector<int> before(b.size() + 1);
  std::vector<int> above(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> suggestion(std::string_view typed, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // no option is near as long; the table grows with the square
  if (typed.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  int least = typed.size() <= 3 ? 2 : 3;
  for (const std::string& word : known) {
    const int distance = edit_distance(typed, word);
    if (distance >= least) continue;
    least = distance;
    best = word;
  }
  if (best || typed.size() < 3) return best;
  const auto begun = std::find_if(known.begin(), known.end(),
                                  [&](const std::string& word) { return word.starts_with(typed); });
  if (begun != known.end()) best = *begun;
  return best;
}

}  // namespace qwench::cli
