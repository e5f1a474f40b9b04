#include "verify/reference_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/logprobs.h"
#include "model/rope.h"
#include "qwench/error.h"

namespace qwench {
namespace {

// The place of a tensor in the model, by the names of a checkpoint.
std::string place(std::string_view probe, int layer) {
  if (probe == "norm") return "model.norm";
  if (probe != "hidden") return fmt::format("model.layers.{}.{}", layer, probe);
  return layer == 0 ? "model.embed_tokens" : fmt::format("model.layers.{}", layer - 1);
}

class Comparison {
 public:
  Comparison(Subject& subject, const Reference& reference, const ReferenceTolerances& tolerances)
      : subject_(subject), reference_(reference), tolerances_(tolerances) {}

  void compare_frequencies() {
    if (!reference_.has("rope.inv_freq")) return;
    const RopeFrequencies rope(subject_.config().rope, subject_.config().head_dim);
    const auto count = static_cast<int64_t>(rope.inv_freq().size());
    add(-1, "rope.inv_freq", "rope.inv_freq", rope.inv_freq(), {count}, tolerances_.frequencies, 0);
  }

  void compare_prompt(int index, const ReferencePrompt& prompt) {
    subject_.check(prompt.ids);
    int ordinal = 0;
    const ScopedProbe scope(subject_.decoder(), [&](std::string_view probe, int layer, const Matrix& value) {
      const int at = ordinal++;
      const std::string prefix = fmt::format("p{}.", index);
      const bool rotated = probe == "q" || probe == "k";
      if (rotated && subject_.config().interleaved_rope) return;  // their elements are in another order
      for (const std::string& key :
           {fmt::format("{}{}.{}", prefix, probe, layer), fmt::format("{}l{}.{}", prefix, layer, probe),
            probe == "norm" ? prefix + "hidden.norm" : std::string()}) {
        if (!reference_.has(key)) continue;
        add(at, key, place(probe, layer), subject_.values_of(value), {value.rows, value.cols},
            tolerances_.states, index);
      }
    });
    const int length = static_cast<int>(prompt.ids.size());
    const SequenceInput input{prompt.ids, 0, length, subject_.blocks(), true, true};
    subject_.forward(std::span(&input, 1));
    const std::string key = fmt::format("p{}.logits", index);
    if (reference_.has(key))
      add(ordinal, key, "lm_head", subject_.logits(), {length, subject_.config().vocab_size},
          tolerances_.logits, index);
  }

  std::vector<ReferenceRow> rows() {
    std::vector<ReferenceRow> rows;
    for (auto& [ordinal, row] : rows_) rows.push_back(std::move(row));
    return rows;
  }

  std::vector<std::string> not_compared() const {
    std::vector<std::string> names;
    for (const std::string& name : reference_.tensor_names()) {
      if (!used_.contains(name)) names.push_back(name);
    }
    return names;
  }

 private:
  void add(int ordinal, const std::string& key, std::string name, std::span<const float> got,
           const std::vector<int64_t>& shape, Tolerance tolerance, int prompt) {
    const Reference::Tensor want = reference_.tensor(key);
    const int64_t cols = shape.size() > 1 ? shape[1] : 1;
    if (want.values.size() != got.size() || want.shape.empty() || want.shape[0] != shape[0]) {
      throw Error(
          ErrorKind::malformed,
          fmt::format("{}: the tensor {} has shape [{}], but this model gives [{}]; was the reference "
                      "recorded from another model?",
                      reference_.path().string(), key, fmt::join(want.shape, ", "), fmt::join(shape, ", ")));
    }
    ReferenceRow& row = rows_[ordinal];
    row.name = std::move(name);
    const Tolerance scaled{tolerance.absolute * tolerances_.scale, tolerance.relative * tolerances_.scale};
    row.difference.add(got, want.values, cols, scaled, prompt);
    used_.insert(key);
  }

  Subject& subject_;
  const Reference& reference_;
  const ReferenceTolerances& tolerances_;
  std::map<int, ReferenceRow> rows_;  // by their order in a pass
  std::set<std::string> used_;
};

GreedyOutcome compare_greedy(Subject& subject, const ReferencePrompt& prompt, double tie) {
  GreedyOutcome outcome;
  outcome.tokens = static_cast<int>(prompt.greedy.size());
  const std::vector<TokenId> got = subject.greedy(prompt.ids, outcome.tokens);
  while (outcome.equal < outcome.tokens &&
         got[static_cast<size_t>(outcome.equal)] == prompt.greedy[static_cast<size_t>(outcome.equal)])
    ++outcome.equal;
  if (outcome.equal == outcome.tokens) return outcome;
  if (!prompt.margins.empty()) outcome.margin = prompt.margins[static_cast<size_t>(outcome.equal)];
  outcome.ok = outcome.margin && *outcome.margin <= tie;
  return outcome;
}

PerplexityOutcome compare_perplexity(Subject& subject, const ReferencePerplexity& want, double tolerance) {
  PerplexityOutcome outcome;
  outcome.want = want.mean_nll;
  double sum = 0;
  subject.run(want.ids, 0, 0, 0, [&](int position, std::span<const float> logits) {
    const auto t = static_cast<size_t>(position);
    if (t + 1 == want.ids.size()) return;
    const double nll = log_sum_exp(logits) - logits[static_cast<size_t>(want.ids[t + 1])];
    sum += nll;
    if (!want.nll.empty()) outcome.max_abs = std::max(outcome.max_abs, std::abs(nll - want.nll[t]));
  });
  outcome.got = sum / static_cast<double>(want.ids.size() - 1);
  outcome.ok = std::abs(outcome.got - outcome.want) <= tolerance;
  return outcome;
}

}  // namespace

int positions_needed(const Reference& reference) {
  size_t most = 1;
  for (const ReferencePrompt& prompt : reference.prompts())
    most = std::max(most, prompt.ids.size() + prompt.greedy.size());
  if (reference.perplexity()) most = std::max(most, reference.perplexity()->ids.size());
  if (reference.timings()) {
    const ReferenceTimings& timings = *reference.timings();
    most = std::max(most, reference.prompts()[static_cast<size_t>(timings.prompt)].ids.size() +
                              static_cast<size_t>(timings.new_tokens));
  }
  return static_cast<int>(std::min<size_t>(most, 1 << 30));
}

ReferenceReport check_reference(Subject& subject, const Reference& reference,
                                const ReferenceTolerances& tolerances) {
  Comparison comparison(subject, reference, tolerances);
  ReferenceReport report;
  comparison.compare_frequencies();
  for (size_t i = 0; i < reference.prompts().size(); ++i)
    comparison.compare_prompt(static_cast<int>(i), reference.prompts()[i]);
  report.rows = comparison.rows();
  report.not_compared = comparison.not_compared();
  const bool greedy = std::any_of(reference.prompts().begin(), reference.prompts().end(),
                                  [](const ReferencePrompt& prompt) { return !prompt.greedy.empty(); });
  if (report.rows.empty() && !greedy && !reference.perplexity()) {
    throw Error(
        ErrorKind::malformed,
        fmt::format("{}: nothing in this reference can be compared; expected tensors such as p0.logits or "
                    "p0.hidden.0, greedy tokens or perplexity",
                    reference.path().string()));
  }
  // Both logits of a tie may be off by the tolerance, in opposite directions.
  double tie = 2 * tolerances.scale * tolerances.logits.absolute;
  for (const ReferenceRow& row : report.rows) {
    if (row.name == "lm_head") tie = std::max(tie, 2 * row.difference.tolerance());
  }
  for (const ReferencePrompt& prompt : reference.prompts())
    report.greedy.push_back(compare_greedy(subject, prompt, tie));
  if (reference.perplexity())
    report.perplexity =
        compare_perplexity(subject, *reference.perplexity(), tolerances.mean_nll * tolerances.scale);
  return report;
}

const ReferenceRow* ReferenceReport::first_difference() const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [](const ReferenceRow& row) { return !row.difference.ok(); });
  return found == rows.end() ? nullptr : &*found;
}

bool ReferenceReport::ok() const {
  return first_difference() == nullptr && (!perplexity || perplexity->ok) &&
         std::all_of(greedy.begin(), greedy.end(), [](const GreedyOutcome& outcome) { return outcome.ok; });
}

std::string ReferenceReport::verdict() const {
  if (const ReferenceRow* row = first_difference()) {
    const Difference::First& at = *row->difference.first();
    return fmt::format(
        "differs from the reference, first at {}: prompt {}, position {}, element {} is {:.6g}, "
        "the reference has {:.6g}",
        row->name, at.prompt, at.position, at.element, at.got, at.want);
  }
  int tokens = 0;
  for (size_t i = 0; i < greedy.size(); ++i) {
    tokens += greedy[i].tokens;
    if (greedy[i].ok) continue;
    return fmt::format("differs from the reference: greedy token {} of prompt {} is another", greedy[i].equal,
                       i);
  }
  if (perplexity && !perplexity->ok) {
    return fmt::format("differs from the reference: the mean negative log-likelihood is {:.6f}, not {:.6f}",
                       perplexity->got, perplexity->want);
  }
  int tensors = 0;
  for (const ReferenceRow& row : rows) tensors += row.difference.tensors();
  return fmt::format("equals the reference within tolerance: {}, {} greedy tokens{}",
                     tensors > 0 ? fmt::format("{} tensors", tensors) : "no tensors recorded", tokens,
                     perplexity ? ", perplexity" : "");
}

}  // namespace qwench
