#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/difference.h"
#include "verify/reference.h"
#include "verify/subject.h"

namespace qwench {

/// What f32 arithmetic may differ by, as measured between independent implementations (docs/verify.md);
/// `scale` multiplies all of them.
struct ReferenceTolerances {
  double scale = 1;
  Tolerance states{1e-4, 1e-5};
  Tolerance logits{1e-4, 5e-6};
  Tolerance frequencies{0, 1e-5};
  double mean_nll = 1e-4;
};

/// One line of the table: a place in the model, over all prompts.
struct ReferenceRow {
  std::string name;  ///< "model.embed_tokens", "model.layers.3.attn_out", "model.layers.3", "lm_head"
  Difference difference;
};

struct GreedyOutcome {
  int tokens = 0;
  int equal = 0;                 ///< tokens before the first other one
  std::optional<double> margin;  ///< of the reference's choice where they part
  bool ok = true;  ///< all equal, or parted where the two best logits are as near as the tolerance
};

struct PerplexityOutcome {
  double got = 0;  ///< mean negative log-likelihood
  double want = 0;
  double max_abs = 0;  ///< of one token's, where the reference has them
  bool ok = true;
};

struct ReferenceReport {
  std::vector<ReferenceRow> rows;     ///< in the order of computation
  std::vector<GreedyOutcome> greedy;  ///< [prompts]
  std::optional<PerplexityOutcome> perplexity;
  std::vector<std::string> not_compared;  ///< tensors of the reference that have no counterpart here

  const ReferenceRow* first_difference() const;  ///< null where all rows are within tolerance
  bool ok() const;
  std::string verdict() const;  ///< one sentence
};

/// Positions that a subject needs for this reference; its max_rows must be as many.
int positions_needed(const Reference& reference);

/// Runs all prompts of the reference in one pass each, decodes its greedy tokens one by one, and scores its
/// perplexity text. Throws Error: malformed where the reference is of another model (a shape or an id does
/// not fit, or nothing in it can be compared).
ReferenceReport check_reference(Subject& subject, const Reference& reference,
                                const ReferenceTolerances& tolerances = {});

}  // namespace qwench
