#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/stack_pool.h"
#include "grammar/token_mask.h"
#include "grammar/token_trie.h"

namespace qwench {

/// A grammar over a vocabulary: where a text stands, and the tokens that may come next. A mask is found by
/// walking the vocabulary's trie; what depends on the innermost rule alone is walked once and kept, and only
/// tokens that go on beyond its end are tried where it was called from (the idea of Dong et al. 2024,
/// XGrammar, arXiv:2411.15100). Masks of places that were seen before are looked up. What is kept is bounded.
/// Thread-safe.
class TokenMasks {
 public:
  using FindToken = std::function<std::optional<TokenId>(const std::string&)>;

  /// A place in a text: cheap to copy.
  class Position;

  /// `find`: the added token with a text, if there is one. `most_bytes`: what is kept, roughly.
  TokenMasks(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie, FindToken find,
             size_t most_bytes = size_t{48} << 20);

  Position start();
  /// Moves on by a token; false where the grammar does not allow it, and the position is then of no more use.
  bool accept(Position& position, TokenId id);
  /// The same by bytes.
  bool accept(Position& position, std::string_view bytes);
  std::shared_ptr<const TokenMask> mask(Position& position);
  bool complete(const Position& position) const;  ///< the text may end here
  bool ended(const Position& position) const;     ///< and can only end here

 private:
  /// What a state over StackPool::kUnknown lets through, and the trie's nodes where its rule may end.
  struct Local {
    TokenMask mask;
    std::vector<uint32_t> ends;
  };
  /// A pool and what was found with it; given up as a whole when it has grown too large.
  struct Run {
    explicit Run(StackPool stacks) : pool(std::move(stacks)) {}
    StackPool pool;
    std::unordered_map<StackPool::StateId, Local> locals;
    std::unordered_map<StackPool::StateId, std::shared_ptr<const TokenMask>> masks;
    size_t mask_bytes = 0;
  };

  void renew(Position& position);
  TokenMask empty_mask() const;
  void walk(Run& run, uint32_t begin, uint32_t end, size_t depth, StackPool::StateId state, TokenMask& mask,
            std::vector<uint32_t>* ends);
  void add_token(uint32_t node, TokenMask& mask) const;
  const Local& local(Run& run, StackPool::StateId state);
  std::shared_ptr<const TokenMask> find_mask(Run& run, StackPool::StateId state);

  const std::shared_ptr<const Grammar> grammar_;
  const std::shared_ptr<const TokenTrie> trie_;
  const FindToken find_;
  const size_t most_bytes_;
  mutable std::mutex mutex_;
  std::shared_ptr<Run> run_;
  std::vector<StackPool::StateId> path_;  // [depth], of a walk
};

class TokenMasks::Position {
 public:
  Position() = default;

 private:
  friend class TokenMasks;
  std::shared_ptr<Run> run_;
  StackPool::StateId state_ = StackPool::kDead;
};

}  // namespace qwench
