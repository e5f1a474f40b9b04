#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace qwench {
namespace {

std::vector<TokenId> numbered(int count, TokenId first = 0) {
  std::vector<TokenId> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// A sequence whose complete blocks are computed and indexed.
struct Held {
  std::vector<TokenId> ids;
  std::vector<int32_t> table;
};

class Cache {
 public:
  explicit Cache(int blocks, PrefixCache::Hash hash = PrefixCache::chain_hash)
      : pool_(blocks), prefixes_(pool_, hash) {}

  Held compute(std::vector<TokenId> ids, uint64_t salt = 0) {
    Held held{std::move(ids), {}};
    for (size_t index = 0; (index + 1) * kBlockSize <= held.ids.size(); ++index) {
      held.table.push_back(pool_.allocate());
      prefixes_.insert(held.ids, salt, index, held.table);
    }
    prefixes_.check();
    pool_.check();
    return held;
  }
  std::vector<int32_t> find(const std::vector<TokenId>& ids, uint64_t salt = 0) {
    std::vector<int32_t> table;
    prefixes_.extend(ids, salt, table);
    release(table);
    prefixes_.check();
    return table;
  }
  void release(const std::vector<int32_t>& table) {
    for (auto block = table.rbegin(); block != table.rend(); ++block) pool_.release(*block);
    pool_.check();
  }

  BlockPool pool_;
  PrefixCache prefixes_;
};

TEST(PrefixCache, FindsTheLongestBeginningInCompleteBlocks) {
  Cache cache(10);
  const Held held = cache.compute(numbered(40));
  EXPECT_EQ(held.table.size(), 2U);
  EXPECT_EQ(cache.find(numbered(100)), held.table);
  EXPECT_EQ(cache.find(numbered(32)), held.table);
  EXPECT_EQ(cache.find(numbered(31)), std::vector<int32_t>{held.table[0]});
  EXPECT_TRUE(cache.find(numbered(15)).empty());
  std::vector<TokenId> other = numbered(32);
  other[20] = 99;
  EXPECT_EQ(cache.find(other), std::vector<int32_t>{held.table[0]});
  other[0] = 99;
  EXPECT_TRUE(cache.find(other).empty()) << "a block is found only after those before it";
}

TEST(PrefixCache, WhatNobodyHoldsStaysUntilBlocksRunOut) {
  Cache cache(4);
  const Held first = cache.compute(numbered(32));
  cache.release(first.table);
  EXPECT_EQ(cache.pool_.available(), 4);
  EXPECT_EQ(cache.find(numbered(32)), first.table);
  const Held second = cache.compute(numbered(32, 100));
  EXPECT_EQ(cache.find(numbered(32)), first.table) << "two blocks were free";
  cache.release(second.table);
  const std::vector<int32_t> used = cache.find(numbered(32));
  EXPECT_EQ(used, first.table) << "used again: now the other is older";
  cache.compute(numbered(16, 500));
  EXPECT_EQ(cache.find(numbered(32)), first.table);
  EXPECT_EQ(cache.find(numbered(32, 100)), std::vector<int32_t>{second.table[0]}) << "the end goes first";
}

TEST(PrefixCache, ABlockInUseIsNeverGivenAway) {
  Cache cache(3);
  const Held held = cache.compute(numbered(32));
  cache.release(cache.compute(numbered(16, 50)).table);
  EXPECT_EQ(cache.pool_.available(), 1);
  cache.compute(numbered(16, 80));
  EXPECT_EQ(cache.pool_.available(), 0);
  EXPECT_EQ(cache.find(numbered(32)), held.table);
}

TEST(PrefixCache, TheSameComputedTwiceIsKeptOnce) {
  Cache cache(6);
  const Held first = cache.compute(numbered(32));
  const Held second = cache.compute(numbered(32));
  EXPECT_EQ(second.table, first.table);
  EXPECT_EQ(cache.pool_.references(first.table[1]), 2);
  EXPECT_EQ(cache.pool_.available(), 4);
}

TEST(PrefixCache, AnotherSaltIsAnotherContent) {
  Cache cache(6);
  const Held held = cache.compute(numbered(32), 7);
  EXPECT_TRUE(cache.find(numbered(32)).empty());
  EXPECT_EQ(cache.find(numbered(32), 7), held.table);
}

TEST(PrefixCache, EqualHashesMixNoAnswers) {
  Cache cache(6, [](uint64_t, std::span<const TokenId>) -> uint64_t { return 42; });
  const Held held = cache.compute(numbered(16));
  EXPECT_TRUE(cache.find(numbered(16, 100)).empty());
  Held other{numbered(16, 100), {cache.pool_.allocate()}};
  EXPECT_FALSE(cache.prefixes_.insert(other.ids, 0, 0, other.table));
  EXPECT_NE(other.table, held.table);
  EXPECT_EQ(cache.find(numbered(16)), held.table);
  EXPECT_TRUE(cache.find(numbered(16, 100)).empty());
}

TEST(PrefixCache, EqualTokensAfterDifferentBeginningsAreDifferent) {
  // A hash that forgets what stood before.
  Cache cache(6, [](uint64_t, std::span<const TokenId> tokens) { return static_cast<uint64_t>(tokens[0]); });
  std::vector<TokenId> ids = numbered(32);
  const Held held = cache.compute(ids);
  std::fill(ids.begin(), ids.begin() + 16, 77);
  const Held other = cache.compute(ids);
  EXPECT_NE(other.table[1], held.table[1]);
  EXPECT_EQ(cache.find(ids), std::vector<int32_t>{other.table[0]});
}

TEST(PrefixCache, HashesOfNearbyBlocksDiffer) {
  std::vector<uint64_t> hashes;
  for (TokenId id = 0; id < 200; ++id) {
    std::vector<TokenId> tokens(kBlockSize, 5);
    tokens[static_cast<size_t>(id) % kBlockSize] = id;
    for (const uint64_t before : {0, 1}) hashes.push_back(PrefixCache::chain_hash(before, tokens));
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_LE(hashes.end() - std::unique(hashes.begin(), hashes.end()), 2) << "id 5 changes nothing";
}

}  // namespace
}  // namespace qwench
