#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/sampler.h"
#include "grammar/grammar_cache.h"
#include "grammar/token_masks.h"
#include "qwench/constraint.h"
#include "text/tokenizer.h"

namespace qwench {

/// Grammars over one model's vocabulary: compiled once, and their masks kept while they are among those used
/// last. Thread-safe.
class Constraints {
 public:
  /// Ids from `valid_ids` on are never drawn.
  Constraints(std::shared_ptr<const Tokenizer> tokenizer, int valid_ids)
      : tokenizer_(std::move(tokenizer)), valid_ids_(valid_ids) {}

  /// Throws Error (invalid_argument) for a constraint that is no good.
  void check(const Constraint& constraint) { grammars_.get(constraint); }
  std::shared_ptr<TokenMasks> masks(const Constraint& constraint);
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const int valid_ids_;
  GrammarCache grammars_;
  std::mutex mutex_;
  std::shared_ptr<const TokenTrie> trie_;  // made when it is first needed
  struct Entry {
    std::shared_ptr<const Grammar> grammar;
    std::shared_ptr<TokenMasks> masks;
  };
  std::list<Entry> entries_;  // the one used last first
};

/// Where one completion stands in its constraint.
class ConstraintState {
 public:
  /// Throws Error (invalid_argument).
  ConstraintState(const Constraint& constraint, Constraints& constraints);

  /// What may come next, of which `stop_ids` are allowed where the text may end. Valid until the next call;
  /// throws Error (invalid_argument) where nothing can come.
  TokenFilter filter(std::span<const TokenId> stop_ids);
  /// Moves on by a token that is no stop id. Throws Error (invalid_argument) where it leads out.
  void accept(TokenId id);
  /// The text is complete and nothing can follow.
  bool ended() const;

 private:
  enum class Phase {
    may_reason,  // nothing yet: reasoning or the text
    reasoning,
    separator,  // behind reasoning: newlines, or the text
    text,
  };

  void accept_reasoning(TokenId id);
  void accept_text(TokenId id);

  const Tokenizer& tokenizer_;
  std::shared_ptr<TokenMasks> masks_;
  TokenMasks::Position position_;
  std::shared_ptr<const TokenMask> mask_;  // of the filter given last
  Phase phase_;
  std::optional<TokenId> open_;    // the token "<think>"
  std::optional<TokenId> close_;   // the token "</think>"
  std::vector<TokenId> newlines_;  // tokens of one or two newlines
  std::vector<TokenId> also_;
  std::string tail_;  // of the reasoning's text
};

}  // namespace qwench
