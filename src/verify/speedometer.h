#pragma once

#include <cstdint>
#include <vector>

#include "verify/subject.h"

namespace qwench {

/// One thing whose speed is measured: `steps` passes in turn over `rows` new tokens of each of `sequences`
/// sequences, which hold `depth` positions before the first. A prompt is one pass of many rows, generation
/// many passes of one.
struct SpeedCase {
  int sequences = 1;
  int rows = 1;
  int depth = 0;
  int steps = 1;

  int positions() const { return depth + rows * steps; }  ///< of each sequence, at the end
  int64_t tokens() const { return int64_t{sequences} * rows * steps; }
};

/// What a case has to do at least.
struct SpeedWork {
  double bytes = 0;       ///< weights and cells of the KV cache that are read, once a pass
  double operations = 0;  ///< multiplications and additions of the matrices and of attention
};

/// Measures a subject's passes, each with its logits and the choice of a token. The cache is filled with
/// random keys and values: only the time is of interest. Used by one thread at a time.
class Speedometer {
 public:
  /// The subject has room for every case: decoder().max_tokens() rows in a pass are cut into several.
  explicit Speedometer(Subject& subject);

  /// Options of a subject that has room for these cases.
  static SubjectOptions room_for(SubjectOptions options, const std::vector<SpeedCase>& cases);

  /// Fills what the case finds in the cache.
  void prepare(const SpeedCase& test);
  /// Seconds of one repetition.
  double seconds(const SpeedCase& test);
  SpeedWork work(const SpeedCase& test) const;

 private:
  std::vector<int32_t> blocks_of(const SpeedCase& test, int sequence) const;
  void pass(const SpeedCase& test, int start, const std::vector<std::vector<int32_t>>& tables);

  Subject& subject_;
  std::vector<TokenId> ids_;
  std::vector<TokenId> drawn_;
};

}  // namespace qwench
