#include "grammar/grammar_cache.h"

#include <fmt/format.h>

namespace qwench {
namespace {

std::string key_of(const Constraint& constraint) {
  std::string key = fmt::format("{}:{}", static_cast<int>(constraint.kind), constraint.text);
  if (constraint.kind != Constraint::Kind::choice) return key;
  for (const std::string& choice : constraint.choices) key += fmt::format("{}:{}", choice.size(), choice);
  return key;
}

}  // namespace

std::shared_ptr<const Grammar> GrammarCache::get(const Constraint& constraint) {
  if (constraint.kind == Constraint::Kind::compiled) return compile_constraint(constraint);
  const std::string key = key_of(constraint);
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      return entries_.front().grammar;
    }
  }
  std::shared_ptr<const Grammar> grammar = compile_constraint(constraint);
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return by_key_[key]->grammar;
  const size_t bytes = grammar->bytes() + 2 * key.size();
  if (bytes > most_bytes_) return grammar;
  entries_.push_front({key, grammar, bytes});
  by_key_[key] = entries_.begin();
  bytes_ += bytes;
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return grammar;
}

}  // namespace qwench
