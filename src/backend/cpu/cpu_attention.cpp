#include "backend/cpu/cpu_attention.h"

#include <algorithm>
#include <atomic>

namespace qwench {
namespace {

// Resident only as far as it is used: a decoded token of a long sequence takes 8 KB for each 1024 positions
// (16 heads of 128).
constexpr uint64_t kPartsBytes = uint64_t{64} << 20;

// With so many pieces of work for each thread they end at about the same time.
constexpr int64_t kPiecesPerThread = 4;

AttentionArgs of_sequence(const AttentionArgs& shared, const SequenceRows& sequence) {
  AttentionArgs args = shared;
  args.first_row = sequence.first_row;
  args.first_position = sequence.context - sequence.rows;
  args.block_table = sequence.block_table.data();
  return args;
}

// Numbers 0, 1, ... , each for whichever thread comes first.
class Turns {
 public:
  int64_t next() { return next_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> next_{0};
};

}  // namespace

void CpuAttention::reserve(int threads, int head_dim) {
  if (scratch_.empty() || scratch_.front().width < head_dim)
    scratch_.assign(static_cast<size_t>(threads), AttentionScratch(head_dim));
  if (threads > 1 && parts_.size() == 0) parts_ = CpuMemory(kPartsBytes, "scratch memory", Pages::small);
}

void CpuAttention::run(ThreadPool& pool, const AttentionArgs& args, std::span<const SequenceRows> sequences) {
  if (shares_parts(pool.size(), args, sequences)) {
    run_parts(pool, args, sequences);
  } else {
    run_pieces(pool, args, sequences);
  }
}

bool CpuAttention::shares_parts(int threads, const AttentionArgs& args,
                                std::span<const SequenceRows> sequences) const {
  const auto pieces = static_cast<int64_t>(sequences.size()) * args.kv_heads;
  if (threads == 1 || pieces >= kPiecesPerThread * threads) return false;
  const int group = args.heads / args.kv_heads;
  uint64_t floats = 0;
  for (const SequenceRows& sequence : sequences) {
    const int queries = sequence.rows * group;
    // A prompt's rows are pieces enough by themselves.
    if (queries > AttentionScratch::kQueries) return false;
    const AttentionParts parts = attention_parts(of_sequence(args, sequence), {0, 0, queries});
    floats += static_cast<uint64_t>(args.kv_heads) * static_cast<uint64_t>(parts.last - parts.first) *
              static_cast<uint64_t>(queries) *
              static_cast<uint64_t>(attention_part_size(scratch_.front().width));
  }
  const bool long_enough = std::any_of(sequences.begin(), sequences.end(),
                                       [](const SequenceRows& s) { return s.context > kKeyPart; });
  return long_enough && floats * sizeof(float) <= parts_.size();
}

// A piece is one kv head with some of a sequence's query vectors. Each thread walks through all pieces and
// computes those whose turn it has drawn; which thread computes one changes nothing in it.
void CpuAttention::run_pieces(ThreadPool& pool, const AttentionArgs& shared,
                              std::span<const SequenceRows> sequences) {
  const int group = shared.heads / shared.kv_heads;
  Turns turns;
  pool.run([&](int worker, int) {
    int64_t mine = turns.next();
    int64_t first = 0;  // of the sequence's pieces
    for (const SequenceRows& sequence : sequences) {
      const AttentionArgs args = of_sequence(shared, sequence);
      const int queries = sequence.rows * group;
      const int64_t pieces = (queries + AttentionScratch::kQueries - 1) / AttentionScratch::kQueries;
      for (; mine < first + pieces * shared.kv_heads; mine = turns.next()) {
        // The last rows first: they see the most keys.
        const auto piece = static_cast<int>(pieces - 1 - (mine - first) / shared.kv_heads);
        const auto head = static_cast<int>((mine - first) % shared.kv_heads);
        const int begin = piece * AttentionScratch::kQueries;
        qwench::attention(args, {head, begin, std::min(queries, begin + AttentionScratch::kQueries)},
                          scratch_[static_cast<size_t>(worker)]);
      }
      first += pieces * shared.kv_heads;
    }
  });
}

// A piece is one kv head and one part of a sequence's keys; then a kv head's parts are merged.
void CpuAttention::run_parts(ThreadPool& pool, const AttentionArgs& shared,
                             std::span<const SequenceRows> sequences) {
  const int group = shared.heads / shared.kv_heads;
  const int64_t size = attention_part_size(scratch_.front().width);
  // Computes the parts, or merges them, whose turn this thread draws.
  const auto walk = [&](bool merge, int worker, Turns& turns) {
    AttentionScratch& scratch = scratch_[static_cast<size_t>(worker)];
    float* results = parts_.floats();
    int64_t mine = turns.next();
    int64_t turn = 0;
    for (const SequenceRows& sequence : sequences) {
      const AttentionArgs args = of_sequence(shared, sequence);
      const int count = sequence.rows * group;
      const AttentionParts parts = attention_parts(args, {0, 0, count});
      for (int head = 0; head < shared.kv_heads; ++head) {
        const AttentionQueries queries{head, 0, count};
        if (merge) {
          if (turn++ == mine) {
            attention_merge(args, queries, results, scratch);
            mine = turns.next();
          }
          results += (parts.last - parts.first) * count * size;
          continue;
        }
        for (int part = parts.first; part < parts.last; ++part, results += count * size) {
          if (turn++ != mine) continue;
          attention_part(args, queries, part, scratch, results);
          mine = turns.next();
        }
      }
    }
  };
  Turns computing;
  pool.run([&](int worker, int) { walk(false, worker, computing); });
  Turns merging;
  pool.run([&](int worker, int) { walk(true, worker, merging); });
}

}  // namespace qwench
