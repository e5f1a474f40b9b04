#pragma once

#include <span>
#include <string>
#include <vector>

#include "verify/subject.h"

namespace qwench {

/// How much each position of a prompt attends to each other, by one head of one layer.
struct AttentionMap {
  int layer = 0;
  int head = 0;
  int size = 0;                ///< positions
  std::vector<float> weights;  ///< [size, size]: row p sums to 1 over the columns that p sees, others are 0

  float at(int row, int column) const {
    return weights[static_cast<size_t>(row) * static_cast<size_t>(size) + static_cast<size_t>(column)];
  }
};

/// softmax(q kᵀ / sqrt(head_dim)) of the head, from the queries and keys of a pass over `ids`, in f64. The
/// subject's max_rows must be at least as many as the ids. Throws Error (invalid_argument) for a layer or a
/// head that is not there.
AttentionMap attention_map(Subject& subject, std::span<const TokenId> ids, int layer, int head);

/// A picture of it: a row for each query, a column for each key, darker where the weight is larger; each cell
/// says its numbers when pointed at. `labels` [size] are the tokens' texts. Throws Error (invalid_argument)
/// for more than 256 positions.
std::string attention_svg(const AttentionMap& map, std::span<const std::string> labels,
                          const std::string& title);

}  // namespace qwench
