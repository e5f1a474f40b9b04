#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qwench/request.h"

namespace qwench {

class Checkpoint;

/// Makes one vector of a prompt's hidden states, in the order of the positions, whatever the passes that they
/// come from: the same bits however the prompt was cut and whatever ran beside it.
class EmbeddingPool {
 public:
  /// `length`: positions of the prompt, at least 1.
  EmbeddingPool(Pooling pooling, int length);

  /// The position whose hidden state is to be taken next; -1 when no more is needed.
  int next_row() const { return next_ < length_ ? next_ : -1; }
  /// False where it holds a value that is not finite. All states have the same size.
  bool take(std::span<const float> state);
  std::vector<float> vector() const;  ///< once next_row() is -1

 private:
  int length_;
  int next_;
  int taken_ = 0;
  std::vector<double> sum_;  // [hidden size]
};

/// The first `dimensions` elements (all for 0) at length 1, as models that are trained for it allow (Kusupati
/// et al. 2022, arXiv:2205.13147); zeros stay zeros. `dimensions` is at most the vector's size.
std::vector<float> unit_vector(std::span<const float> vector, int dimensions = 0);

/// What a model's files ask for: 1_Pooling/config.json, as sentence-transformers writes it, or
/// ARCHITECTURE.pooling_type of a GGUF file; mean where they say nothing. Absent where they ask for another
/// kind. Throws Error (malformed).
std::optional<Pooling> pooling_of(const Checkpoint& checkpoint);

/// "mean" or "last"; absent for other words.
std::optional<Pooling> pooling_named(std::string_view word);

}  // namespace qwench
