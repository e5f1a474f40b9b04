#include "engine/constraints.h"

#include <algorithm>

#include "engine/reasoning.h"
#include "qwench/error.h"
#include "text/token_bytes.h"

namespace qwench {
namespace {

constexpr size_t kKeptMasks = 8;                 // grammars whose masks are kept
constexpr size_t kMaskBytes = size_t{32} << 20;  // of each
constexpr std::string_view kThinkEnd = "</think>";

std::optional<TokenId> added_token(const Tokenizer& tokenizer, const std::string& text) {
  const auto id = tokenizer.find(text);
  return id && tokenizer.is_added(*id) ? id : std::nullopt;
}

std::vector<TokenId> newlines(const Tokenizer& tokenizer) {
  std::vector<TokenId> found;
  for (const char* text : {"\n", "\n\n"}) {
    const std::vector<TokenId> ids = tokenizer.encode(text, SpecialTokens::none);
    if (ids.size() == 1) found.push_back(ids[0]);
  }
  return found;
}

}  // namespace

std::shared_ptr<TokenMasks> Constraints::masks(const Constraint& constraint) {
  const std::shared_ptr<const Grammar> grammar = grammars_.get(constraint);
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.grammar == grammar; });
  if (known != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, known);
    return entries_.front().masks;
  }
  if (!trie_) trie_ = std::make_shared<const TokenTrie>(TokenTrie::of(*tokenizer_, valid_ids_));
  const auto find = [tokenizer = tokenizer_, valid = valid_ids_](const std::string& text) {
    const auto id = added_token(*tokenizer, text);
    return id && *id < valid ? id : std::nullopt;
  };
  entries_.push_front({grammar, std::make_shared<TokenMasks>(grammar, trie_, find, kMaskBytes)});
  if (entries_.size() > kKeptMasks) entries_.pop_back();
  return entries_.front().masks;
}

ConstraintState::ConstraintState(const Constraint& constraint, Constraints& constraints)
    : tokenizer_(constraints.tokenizer()),
      masks_(constraints.masks(constraint)),
      position_(masks_->start()),
      phase_(Phase::text) {
  if (constraint.reasoning == Constraint::Reasoning::none) return;
  open_ = reasoning_token(tokenizer_);
  close_ = added_token(tokenizer_, std::string(kThinkEnd));
  newlines_ = newlines(tokenizer_);
  if (constraint.reasoning == Constraint::Reasoning::open) {
    phase_ = Phase::reasoning;
  } else if (open_) {
    phase_ = Phase::may_reason;
  }
}

TokenFilter ConstraintState::filter(std::span<const TokenId> stop_ids) {
  if (phase_ == Phase::reasoning) return {nullptr, {}, stop_ids};
  mask_ = masks_->mask(position_);
  also_.clear();
  if (phase_ == Phase::may_reason) also_.push_back(*open_);
  if (phase_ == Phase::separator) also_.insert(also_.end(), newlines_.begin(), newlines_.end());
  const bool complete = masks_->complete(position_);
  if (complete) also_.insert(also_.end(), stop_ids.begin(), stop_ids.end());
  if (!mask_->any && also_.empty()) {
    throw Error(ErrorKind::invalid_argument,
                "no token of the model's vocabulary can go on with the text that the constraint asks for");
  }
  return {mask_.get(), also_, complete ? std::span<const TokenId>() : stop_ids};
}

void ConstraintState::accept(TokenId id) {
  if (phase_ == Phase::may_reason && id == *open_) {
    phase_ = Phase::reasoning;
    return;
  }
  if (phase_ == Phase::reasoning) return accept_reasoning(id);
  if (phase_ == Phase::separator && std::find(newlines_.begin(), newlines_.end(), id) != newlines_.end()) {
    phase_ = Phase::text;
    return;
  }
  phase_ = Phase::text;
  accept_text(id);
}

void ConstraintState::accept_reasoning(TokenId id) {
  if (close_ && id == *close_) {
    phase_ = Phase::separator;
    return;
  }
  // The same text of other tokens ends it too, for whoever reads it.
  tail_ += token_bytes(tokenizer_, id);
  const size_t close = tail_.find(kThinkEnd);
  if (close == std::string::npos) {
    if (tail_.size() > kThinkEnd.size()) tail_.erase(0, tail_.size() - kThinkEnd.size());
    return;
  }
  // The token that ends the block may hold what is behind it.
  std::string_view behind = std::string_view(tail_).substr(close + kThinkEnd.size());
  phase_ = behind.empty() ? Phase::separator : Phase::text;
  behind.remove_prefix(std::min(behind.find_first_not_of('\n'), behind.size()));
  if (!behind.empty() && !masks_->accept(position_, behind)) {
    throw Error(ErrorKind::invalid_argument,
                "the model went on behind its reasoning in a way that the constraint does not allow");
  }
}

void ConstraintState::accept_text(TokenId id) {
  if (!masks_->accept(position_, id))
    throw Error(ErrorKind::invalid_argument, "a token was drawn that the constraint does not allow");
}

bool ConstraintState::ended() const { return phase_ == Phase::text && masks_->ended(position_); }

}  // namespace qwench
