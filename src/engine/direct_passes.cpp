#include "engine/direct_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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
  BlockLease(BlockLease&& other) noexcept : pool_(other.pool_), blocks_(std::move(other.blocks_)) {}
  BlockLease(const BlockLease&) = delete;
  BlockLease& operator=(const BlockLease&) = delete;
  BlockLease& operator=(BlockLease&&) = delete;
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

double time_directly(LoadedModel& model, BlockPool& pool, int sequences, int rows, int depth) {
  Decoder& decoder = model.decoder();
  const ModelInfo& info = model.info();
  check_range("sequences", sequences, 1, decoder.max_tokens());
  check_range("rows", rows, 1, info.context);
  check_range("depth", depth, 0, info.context - rows);
  const int blocks = (depth + rows + kBlockSize - 1) / kBlockSize;
  if (static_cast<int64_t>(blocks) * sequences > pool.available()) {
    throw Error(ErrorKind::out_of_memory,
                fmt::format("{} sequences of {} positions do not fit the KV cache of {}", sequences,
                            depth + rows, pool.size() * kBlockSize));
  }
  std::vector<BlockLease> leases;
  leases.reserve(static_cast<size_t>(sequences));
  for (int i = 0; i < sequences; ++i) leases.emplace_back(pool, depth + rows);
  std::vector<TokenId> ids(static_cast<size_t>(rows));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<TokenId>((i * 7919 + 13) % static_cast<size_t>(info.vocab_size));

  const int chunk = std::max(1, decoder.max_tokens() / sequences);
  std::vector<SequenceInput> inputs(static_cast<size_t>(sequences));
  std::vector<TokenId> drawn;
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0; done < rows; done += chunk) {
    const int count = std::min(chunk, rows - done);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = {
          std::span<const TokenId>(ids).subspan(static_cast<size_t>(done), static_cast<size_t>(count)),
          depth + done,
          depth + rows,
          leases[i].table(),
          false,
          done + count == rows};
    }
    decoder.forward(inputs, model.cache());
    for (int first = 0; first < decoder.logit_rows(); first += decoder.max_logit_rows()) {
      const int slice = std::min(decoder.logit_rows() - first, decoder.max_logit_rows());
      const Matrix& matrix = decoder.logits(first, slice);
      drawn.resize(static_cast<size_t>(slice));
      model.backend().argmax(matrix, model.generation().vocabulary->valid_ids, drawn);
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace qwench
