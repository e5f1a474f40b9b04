#include "verify/logit_lens.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "engine/logprobs.h"

namespace qwench {

std::vector<LensRow> logit_lens(Subject& subject, std::span<const TokenId> ids, int top) {
  subject.check(ids);
  const ModelConfig& config = subject.config();
  Backend& backend = subject.backend();
  const DecoderWeights& weights = subject.decoder().weights();
  const auto state = backend.allocate(1, config.hidden_size);
  const auto normed = backend.allocate(1, config.hidden_size);
  const auto logits = backend.allocate(1, config.vocab_size);
  state->rows = normed->rows = logits->rows = 1;
  std::vector<float> row(subject.vocab());
  std::vector<LensRow> rows;
  // The batch's only row with logits is the last, which is what gather_rows takes.
  const ScopedProbe probe(subject.decoder(), [&](std::string_view name, int layer, const Matrix& value) {
    if (name != "hidden") return;
    backend.gather_rows(value, *state);
    backend.rms_norm(*state, *weights.norm, config.rms_norm_eps, *normed);
    backend.linear(*normed, std::array{Linear{&weights.head(), nullptr}}, std::array{logits.get()});
    backend.read_row(*logits, 0, row);
    LensRow line{layer == 0 ? "embed_tokens" : fmt::format("layers.{}", layer - 1), {}};
    for (const auto& [id, logprob] : top_logprobs(row, top, config.vocab_size))
      line.top.emplace_back(id, std::exp(logprob));
    rows.push_back(std::move(line));
  });
  const SequenceInput input{ids, 0, static_cast<int>(ids.size()), subject.blocks(), false, true};
  subject.forward(std::span(&input, 1));
  return rows;
}

}  // namespace qwench
