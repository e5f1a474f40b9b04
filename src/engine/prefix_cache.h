#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "model/block_pool.h"
#include "qwench/sampling.h"

namespace qwench {

/// Finds complete blocks of the KV cache by what they hold: the tokens of the block and all that stand
/// before it. The address is a hash chained over the blocks (as in vLLM's automatic prefix caching), but a
/// hit needs more than the hash: equal tokens, and the very block before it in the chain.
///
/// Whoever holds a block holds those before it, and gives back the last one first; so a block leaves the
/// cache before the one it builds on, and what is indexed is always reachable from its beginning. Used by the
/// thread that owns the model.
class PrefixCache {
 public:
  using Hash = uint64_t (*)(uint64_t before, std::span<const TokenId> tokens);
  static uint64_t chain_hash(uint64_t before, std::span<const TokenId> tokens);

  /// Listens to `pool`'s evictions; `hash` is another one in tests.
  explicit PrefixCache(BlockPool& pool, Hash hash = chain_hash);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// `table` holds the blocks of the first tokens of `ids`, all of them indexed; appends the blocks, each
  /// with a reference, that hold what follows, as far as complete blocks of `ids` go. What is computed under
  /// another `salt` is never found. Returns how many were appended.
  int extend(std::span<const TokenId> ids, uint64_t salt, std::vector<int32_t>& table);

  /// Indexes `table[index]`, which is computed and holds the tokens `ids` [index * kBlockSize, ...), as all
  /// before it are. Where the same is there already, that block takes its place in the table. False when it
  /// cannot be found later (its hash is another's): then nothing after it can.
  bool insert(std::span<const TokenId> ids, uint64_t salt, size_t index, std::vector<int32_t>& table);

  int indexed() const { return static_cast<int>(blocks_.size()); }
  /// Throws std::logic_error where index and pool contradict each other: for tests and debug builds.
  void check() const;

 private:
  struct Entry {
    uint64_t hash = 0;
    uint64_t salt = 0;
    int32_t before = -1;  // the block before it; -1 for a first one
    TokenId tokens[kBlockSize] = {};
  };

  uint64_t hash_of(std::span<const TokenId> tokens, uint64_t salt, int32_t before) const;
  bool holds(int32_t block, std::span<const TokenId> tokens, uint64_t salt, int32_t before) const;

  BlockPool& pool_;
  const Hash hash_;
  std::vector<Entry> entries_;                    // [blocks used so far]; valid for those in blocks_
  std::unordered_map<uint64_t, int32_t> blocks_;  // by hash
};

}  // namespace qwench
