#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "grammar/constraint_grammar.h"
#include "grammar/grammar.h"
#include "qwench/constraint.h"

namespace qwench {

/// Compiled grammars by what they were compiled from; those unused longest leave first. Thread-safe.
class GrammarCache {
 public:
  explicit GrammarCache(size_t most_bytes = size_t{64} << 20) : most_bytes_(most_bytes) {}

  /// As compile_constraint.
  std::shared_ptr<const Grammar> get(const Constraint& constraint);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Grammar> grammar;
    size_t bytes;
  };

  const size_t most_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace qwench
