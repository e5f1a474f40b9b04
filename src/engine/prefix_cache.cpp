#include "engine/prefix_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace qwench {
namespace {

std::span<const TokenId> block_tokens(std::span<const TokenId> ids, size_t index) {
  return ids.subspan(index * kBlockSize, kBlockSize);
}

}  // namespace

// The mixing step of SplitMix64 over two tokens at a time.
uint64_t PrefixCache::chain_hash(uint64_t before, std::span<const TokenId> tokens) {
  uint64_t hash = before;
  const auto mix = [&](uint64_t value) {
    hash = (hash ^ value) + 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBULL;
    hash ^= hash >> 31;
  };
  for (size_t i = 0; i + 1 < tokens.size(); i += 2) {
    mix((static_cast<uint64_t>(static_cast<uint32_t>(tokens[i])) << 32) |
        static_cast<uint32_t>(tokens[i + 1]));
  }
  if (tokens.size() % 2 == 1) mix(static_cast<uint32_t>(tokens.back()));
  return hash;
}

PrefixCache::PrefixCache(BlockPool& pool, Hash hash) : pool_(pool), hash_(hash) {
  pool_.set_on_evict([this](int32_t block) { blocks_.erase(entries_[static_cast<size_t>(block)].hash); });
}

uint64_t PrefixCache::hash_of(std::span<const TokenId> tokens, uint64_t salt, int32_t before) const {
  return hash_(before < 0 ? salt : entries_[static_cast<size_t>(before)].hash, tokens);
}

bool PrefixCache::holds(int32_t block, std::span<const TokenId> tokens, uint64_t salt, int32_t before) const {
  const Entry& entry = entries_[static_cast<size_t>(block)];
  return entry.before == before && entry.salt == salt &&
         std::equal(tokens.begin(), tokens.end(), entry.tokens);
}

int PrefixCache::extend(std::span<const TokenId> ids, uint64_t salt, std::vector<int32_t>& table) {
  const size_t had = table.size();
  for (size_t index = had; (index + 1) * kBlockSize <= ids.size(); ++index) {
    const int32_t before = index == 0 ? -1 : table[index - 1];
    const std::span<const TokenId> tokens = block_tokens(ids, index);
    const auto found = blocks_.find(hash_of(tokens, salt, before));
    if (found == blocks_.end() || !holds(found->second, tokens, salt, before)) break;
    pool_.add_reference(found->second);
    table.push_back(found->second);
  }
  return static_cast<int>(table.size() - had);
}

bool PrefixCache::insert(std::span<const TokenId> ids, uint64_t salt, size_t index,
                         std::vector<int32_t>& table) {
  const int32_t before = index == 0 ? -1 : table[index - 1];
  const int32_t block = table[index];
  assert(before < 0 || pool_.kept(before));
  assert(!pool_.kept(block));
  const std::span<const TokenId> tokens = block_tokens(ids, index);
  const uint64_t hash = hash_of(tokens, salt, before);
  const auto [place, added] = blocks_.try_emplace(hash, block);
  if (added) {
    if (entries_.size() <= static_cast<size_t>(block)) entries_.resize(static_cast<size_t>(block) + 1);
    Entry& entry = entries_[static_cast<size_t>(block)];
    entry.hash = hash;
    entry.salt = salt;
    entry.before = before;
    std::copy(tokens.begin(), tokens.end(), entry.tokens);
    pool_.keep(block);
    return true;
  }
  if (!holds(place->second, tokens, salt, before)) return false;
  pool_.add_reference(place->second);
  pool_.release(block);
  table[index] = place->second;
  return true;
}

void PrefixCache::check() const {
  for (const auto& [hash, block] : blocks_) {
    const Entry& entry = entries_[static_cast<size_t>(block)];
    if (entry.hash != hash || !pool_.kept(block))
      throw std::logic_error(fmt::format("block {} is indexed, but not kept", block));
    if (hash_of(entry.tokens, entry.salt, entry.before) != hash)
      throw std::logic_error(fmt::format("block {} is indexed by a hash that is not its own", block));
    if (entry.before < 0) continue;
    const auto before = blocks_.find(entries_[static_cast<size_t>(entry.before)].hash);
    if (before == blocks_.end() || before->second != entry.before)
      throw std::logic_error(
          fmt::format("block {} outlived block {}, which it builds on", block, entry.before));
    if (pool_.references(entry.before) < pool_.references(block))
      throw std::logic_error(
          fmt::format("block {} has more references than {} before it", block, entry.before));
  }
  int kept = 0;
  for (int32_t block = 0; block < pool_.size(); ++block) kept += pool_.kept(block) ? 1 : 0;
  if (kept != indexed())
    throw std::logic_error(fmt::format("{} blocks are kept, but {} are indexed", kept, indexed()));
}

}  // namespace qwench
