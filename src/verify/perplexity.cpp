#include "verify/perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/logprobs.h"
#include "qwench/error.h"

namespace qwench {
namespace {

void check_windows(int64_t length, int64_t context, int64_t stride) {
  if (length < 2) throw Error(ErrorKind::invalid_argument, "a text of at least two tokens is needed");
  if (context < 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("windows of {} tokens are too short: the least is 2", context));
  if (stride < 1 || stride > context) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("windows of {} tokens cannot be {} apart; the stride is from 1 to {}", context,
                            stride, context));
  }
}

std::span<const TokenId> part(std::span<const TokenId> ids, const TextWindow& window) {
  return ids.subspan(static_cast<size_t>(window.begin), static_cast<size_t>(window.end - window.begin));
}

/// The rows [first, first + count) of logits of the last pass, kept on the host.
void keep_logits(Subject& subject, int first, int count, std::vector<float>& rows) {
  rows.resize(static_cast<size_t>(count) * subject.vocab());
  const Matrix& slice = subject.decoder().logits(first, count);
  for (int row = 0; row < count; ++row) {
    subject.backend().read_row(
        slice, row, std::span(rows).subspan(static_cast<size_t>(row) * subject.vocab(), subject.vocab()));
  }
}

}  // namespace

std::vector<TextWindow> sliding_windows(int64_t length, int64_t context, int64_t stride) {
  check_windows(length, context, stride);
  std::vector<TextWindow> windows;
  int64_t scored_to = 1;
  for (int64_t begin = 0; scored_to < length; begin += stride) {
    const int64_t end = std::min(begin + context, length);
    const int64_t first = std::max(scored_to, begin + 1);
    if (first < end) windows.push_back({begin, end, first});
    scored_to = end;
    if (end == length) break;
  }
  return windows;
}

double Perplexity::perplexity() const { return std::exp(mean_nll); }

Perplexity measure_perplexity(Subject& subject, std::span<const TokenId> ids, int64_t context, int64_t stride,
                              const std::function<void(const Perplexity&, double)>& progress) {
  double sum = 0;
  double squares = 0;
  Perplexity result;
  for (const TextWindow& window : sliding_windows(static_cast<int64_t>(ids.size()), context, stride)) {
    const std::span<const TokenId> text = part(ids, window);
    const auto first = static_cast<int>(window.first_scored - window.begin);
    subject.run(text, 0, 0, first - 1, [&](int position, std::span<const float> logits) {
      const auto next = static_cast<size_t>(position) + 1;
      if (next == text.size()) return;
      const double nll = log_sum_exp(logits) - logits[static_cast<size_t>(text[next])];
      sum += nll;
      squares += nll * nll;
      ++result.scored;
    });
    const auto count = static_cast<double>(result.scored);
    result.mean_nll = sum / count;
    const double variance = std::max(0.0, squares / count - result.mean_nll * result.mean_nll);
    result.standard_error = std::sqrt(variance / count);
    if (progress) progress(result, static_cast<double>(window.end) / static_cast<double>(ids.size()));
  }
  return result;
}

void check_comparable(const Subject& a, const Subject& b) {
  if (a.vocab() != b.vocab()) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the models have vocabularies of {} and {} ids and cannot be compared", a.vocab(),
                            b.vocab()));
  }
}

Divergence::Summary compare_models(Subject& a, Subject& b, std::span<const TokenId> ids, int64_t context,
                                   int64_t stride,
                                   const std::function<void(const Divergence&, double)>& progress) {
  check_comparable(a, b);
  Divergence divergence;
  std::vector<float> rows_a;  // [slice, vocab]
  std::vector<float> rows_b;
  const int pass = std::min({a.decoder().max_tokens(), b.decoder().max_tokens()});
  const int slice = std::min(a.decoder().max_logit_rows(), b.decoder().max_logit_rows());
  for (const TextWindow& window : sliding_windows(static_cast<int64_t>(ids.size()), context, stride)) {
    const std::span<const TokenId> text = part(ids, window);
    a.check(text);
    b.check(text);
    const auto length = static_cast<int>(text.size());
    const auto first = static_cast<int>(window.first_scored - window.begin) - 1;
    for (int start = 0; start < length - 1;) {
      const bool wanted = start >= first;
      const int rows = std::min(pass, (wanted ? length - 1 : first) - start);
      for (Subject* model : {&a, &b}) {
        const SequenceInput input{text.subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
                                  start,
                                  length,
                                  model->blocks(),
                                  wanted,
                                  wanted};
        model->forward(std::span(&input, 1));
      }
      for (int row = 0; wanted && row < rows; row += slice) {
        const int count = std::min(slice, rows - row);
        keep_logits(a, row, count, rows_a);
        keep_logits(b, row, count, rows_b);
        for (int i = 0; i < count; ++i) {
          const size_t at = static_cast<size_t>(i) * a.vocab();
          divergence.add(std::span(rows_a).subspan(at, a.vocab()), std::span(rows_b).subspan(at, a.vocab()),
                         text[static_cast<size_t>(start + row + i) + 1]);
        }
      }
      start += rows;
    }
    if (progress) progress(divergence, static_cast<double>(window.end) / static_cast<double>(ids.size()));
  }
  return divergence.summary();
}

}  // namespace qwench
