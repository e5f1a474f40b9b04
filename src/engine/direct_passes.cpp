#include "engine/direct_passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/logprobs.h"
#include "engine/request_check.h"

namespace qwench {
namespace {

/// Gives blocks of the cache back when it goes out of scope.
class BlockLease {
 public:
  BlockLease(BlockPool& pool, int positions) : pool_(pool) {
    const int count = (positions + kBlockSize - 1) / kBlockSize;
    for (int i = 0; i < count; ++i) blocks_.push_back(pool.allocate());
  }
  BlockLease(const BlockLease&) = delete;
  BlockLease& operator=(const BlockLease&) = delete;
  ~BlockLease() {
    for (const int32_t block : blocks_) pool_.release(block);
  }
  std::span<const int32_t> table() const { return blocks_; }

 private:
  BlockPool& pool_;
  std::vector<int32_t> blocks_;
};

}  // namespace

Score score_directly(LoadedModel& model, BlockPool& blocks, std::span<const TokenId> ids, int top) {
  Decoder& decoder = model.decoder();
  const ModelInfo& info = model.info();
  std::vector<float> logits(static_cast<size_t>(info.vocab_size));  // one row on the host
  check_ids(ids, info);
  check_range("top", top, 0, info.vocab_size);
  const int length = static_cast<int>(std::min<size_t>(ids.size(), 1 << 30));
  if (length > info.context) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} to score, but the context holds {}{}", tokens(ids.size()), info.context,
                            what_to_shorten("text", info)));
  }
  const BlockLease lease(blocks, length);
  Score score;
  score.logprobs.reserve(ids.size() - 1);
  for (int start = 0; start < length; start += decoder.max_tokens()) {
    const int rows = std::min(length - start, decoder.max_tokens());
    const SequenceInput input{ids.subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
                              start,
                              length,
                              lease.table(),
                              true,
                              true};
    decoder.forward(std::span(&input, 1), model.cache());
    for (int row = 0; row < rows; ++row) {
      const int slice = row % decoder.max_logit_rows();
      const Matrix& matrix = slice == 0 ? decoder.logits(row, std::min(rows - row, decoder.max_logit_rows()))
                                        : decoder.last_logits();
      model.backend().read_row(matrix, slice, logits);
      const int next = start + row + 1;
      if (next < length) {
        const TokenId id = ids[static_cast<size_t>(next)];
        score.logprobs.push_back(
            static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum_exp(logits)));
      } else {
        score.top = top_logprobs(logits, top, model.generation().vocabulary->valid_ids);
      }
    }
  }
  return score;
}

}  // namespace qwench
