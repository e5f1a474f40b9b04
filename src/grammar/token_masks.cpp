#include "grammar/token_masks.h"

#include <algorithm>
#include <utility>

namespace qwench {

TokenMasks::TokenMasks(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
                       FindToken find, size_t most_bytes)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      find_(std::move(find)),
      most_bytes_(most_bytes),
      run_(std::make_shared<Run>(StackPool(grammar_, find_))),
      path_(trie_->deepest() + 1) {}

TokenMasks::Position TokenMasks::start() {
  const std::lock_guard lock(mutex_);
  Position position;
  position.run_ = run_;
  position.state_ = run_->pool.start();
  return position;
}

/// Positions of a run that was given up go over to the present one.
void TokenMasks::renew(Position& position) {
  if (run_->pool.bytes() + run_->mask_bytes > most_bytes_)
    run_ = std::make_shared<Run>(StackPool(grammar_, find_));
  if (position.run_ == run_) return;
  position.state_ = run_->pool.import(position.run_->pool, position.state_);
  position.run_ = run_;
}

bool TokenMasks::accept(Position& position, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  renew(position);
  StackPool& pool = position.run_->pool;
  for (const char byte : bytes) position.state_ = pool.step(position.state_, static_cast<uint8_t>(byte));
  const StackPool::State& state = pool.state(position.state_);
  return state.complete || !state.stacks.empty();
}

bool TokenMasks::accept(Position& position, TokenId id) {
  const std::string_view bytes = trie_->bytes_of(id);
  if (!bytes.empty()) return accept(position, bytes);
  const std::lock_guard lock(mutex_);
  renew(position);
  StackPool& pool = position.run_->pool;
  position.state_ = pool.step_token(position.state_, id);
  const StackPool::State& state = pool.state(position.state_);
  return state.complete || !state.stacks.empty();
}

bool TokenMasks::complete(const Position& position) const {
  const std::lock_guard lock(mutex_);
  return position.run_->pool.state(position.state_).complete;
}

bool TokenMasks::ended(const Position& position) const {
  const std::lock_guard lock(mutex_);
  const StackPool::State& state = position.run_->pool.state(position.state_);
  return state.complete && state.stacks.empty();
}

std::shared_ptr<const TokenMask> TokenMasks::mask(Position& position) {
  const std::lock_guard lock(mutex_);
  renew(position);
  return find_mask(*position.run_, position.state_);
}

TokenMask TokenMasks::empty_mask() const {
  TokenMask mask;
  mask.words.assign((static_cast<size_t>(trie_->vocabulary_size()) + 63) / 64, 0);
  return mask;
}

void TokenMasks::add_token(uint32_t node, TokenMask& mask) const {
  const TokenTrie::Node& found = trie_->nodes()[node];
  if (found.token < 0) return;
  mask.set(found.token);
  if (!found.has_more) return;
  const auto others = trie_->others();
  for (auto more = std::lower_bound(others.begin(), others.end(), std::pair{node, TokenId{-1}});
       more != others.end() && more->first == node; ++more)
    mask.set(more->second);
}

/// The nodes [begin, end), whole subtrees of the same parent, which lies `depth` deep with `state` behind it.
void TokenMasks::walk(Run& run, uint32_t begin, uint32_t end, size_t depth, StackPool::StateId state,
                      TokenMask& mask, std::vector<uint32_t>* ends) {
  const TokenTrie::Node* nodes = trie_->nodes().data();
  StackPool& pool = run.pool;
  path_[depth] = state;
  for (uint32_t at = begin; at < end;) {
    const TokenTrie::Node& node = nodes[at];
    const StackPool::StateId next = pool.step(path_[node.depth - 1U], node.byte);
    if (next == StackPool::kDead) {
      at = node.next;
      continue;
    }
    path_[node.depth] = next;
    if (node.token >= 0) add_token(at, mask);
    if (ends != nullptr && pool.state(next).leaves) ends->push_back(at);
    ++at;
  }
}

const TokenMasks::Local& TokenMasks::local(Run& run, StackPool::StateId state) {
  const auto known = run.locals.find(state);
  if (known != run.locals.end()) return known->second;
  Local found;
  found.mask = empty_mask();
  walk(run, 0, static_cast<uint32_t>(trie_->nodes().size()), 0, state, found.mask, &found.ends);
  for (const TokenId id : run.pool.tokens(state)) found.mask.set(id);
  run.mask_bytes += found.mask.words.size() * 8 + found.ends.size() * 4 + 64;
  return run.locals.emplace(state, std::move(found)).first->second;
}

std::shared_ptr<const TokenMask> TokenMasks::find_mask(Run& run, StackPool::StateId state) {
  const auto known = run.masks.find(state);
  if (known != run.masks.end()) return known->second;
  auto mask = std::make_shared<TokenMask>(empty_mask());
  const std::vector<StackPool::Stack> stacks = run.pool.state(state).stacks;
  const bool shallow = std::all_of(stacks.begin(), stacks.end(), [&](const StackPool::Stack& stack) {
    return run.pool.is_shallow(stack.frame);
  });
  if (!shallow) {
    walk(run, 0, static_cast<uint32_t>(trie_->nodes().size()), 0, state, *mask, nullptr);
    for (const TokenId id : run.pool.tokens(state)) mask->set(id);
  }
  for (size_t first = 0; shallow && first < stacks.size();) {
    size_t last = first;
    while (last < stacks.size() && stacks[last].frame == stacks[first].frame) ++last;
    const Local& inner = local(run, run.pool.above_unknown(std::span(stacks).subspan(first, last - first)));
    for (size_t i = 0; i < mask->words.size(); ++i) mask->words[i] |= inner.mask.words[i];
    mask->any = mask->any || inner.mask.any;
    if (stacks[first].frame != StackPool::kRoot) {
      const StackPool::StateId behind = run.pool.after_return(stacks[first].frame);
      for (const uint32_t node : inner.ends) {
        const TokenTrie::Node& end = trie_->nodes()[node];
        walk(run, node + 1, end.next, end.depth, behind, *mask, nullptr);
      }
    }
    first = last;
  }
  run.mask_bytes += mask->words.size() * 8 + 64;
  run.masks.emplace(state, mask);
  return mask;
}

}  // namespace qwench
