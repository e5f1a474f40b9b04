#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "grammar/grammar_builder.h"
#include "grammar/stack_pool.h"

namespace qwench {

/// Texts of one regular language, told apart by which conditions, regular languages too, they meet: the
/// product of deterministic automata, so that a text may be asked to meet some and not to meet others.
class TextProduct {
 public:
  using Expr = GrammarBuilder::Expr;
  using Make = std::function<Expr(GrammarBuilder&)>;  ///< a language, made of another builder's expressions

  static constexpr size_t kMostConditions = 32;
  static constexpr size_t kMostStates = 20000;

  /// `all`: the texts that there are.
  TextProduct(GrammarBuilder& builder, const Make& all);

  /// Its bit is the next one. Before the first question; throws by builder.fail for more than there may be.
  void add_condition(const Make& texts);

  /// The sets of conditions, as bits, that some text meets, and no others. Throws by builder.fail where the
  /// automaton grows too large.
  std::set<uint32_t> classes();
  /// The texts whose set of conditions is `wanted`.
  Expr texts(const std::function<bool(uint32_t)>& wanted);

 private:
  struct Edge {
    uint8_t low;
    uint8_t high;
    uint32_t target;
  };
  struct State {
    std::vector<Edge> edges;
    std::optional<uint32_t> met;  // of a text that ends here
  };
  using Place = std::vector<StackPool::StateId>;  // of each automaton, that of all texts first

  struct PlaceHash {
    size_t operator()(const Place& place) const;
  };

  void explore();
  uint32_t visit(const Place& place);

  GrammarBuilder& builder_;
  std::vector<std::unique_ptr<StackPool>> automata_;
  std::unordered_map<Place, uint32_t, PlaceHash> known_;
  std::vector<Place> places_;
  std::vector<State> states_;
};

}  // namespace qwench
