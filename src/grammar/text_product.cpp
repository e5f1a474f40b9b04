#include "grammar/text_product.h"

#include <fmt/format.h>

#include <utility>

namespace qwench {
namespace {

std::unique_ptr<StackPool> automaton_of(const TextProduct::Make& make, const std::string& what) {
  GrammarBuilder builder(what);
  const GrammarBuilder::RuleId root = builder.declare("condition");
  // Never without a text, which would be no grammar: a byte that no UTF-8 holds stands for it.
  builder.define(root, builder.either({make(builder), builder.byte(0xFF, 0xFF)}));
  return std::make_unique<StackPool>(builder.build(root),
                                     [](const std::string&) { return std::optional<TokenId>(); });
}

}  // namespace

TextProduct::TextProduct(GrammarBuilder& builder, const Make& all) : builder_(builder) {
  automata_.push_back(automaton_of(all, builder.what()));
}

void TextProduct::add_condition(const Make& texts) {
  if (automata_.size() > kMostConditions)
    builder_.fail(fmt::format("more than {} conditions on one string are not supported", kMostConditions));
  automata_.push_back(automaton_of(texts, builder_.what()));
}

size_t TextProduct::PlaceHash::operator()(const Place& place) const {
  uint64_t hash = 0;
  for (const StackPool::StateId id : place) hash = (hash ^ static_cast<uint64_t>(id)) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32);
}

uint32_t TextProduct::visit(const Place& place) {
  const auto [found, is_new] = known_.emplace(place, static_cast<uint32_t>(places_.size()));
  if (!is_new) return found->second;
  if (places_.size() >= kMostStates) {
    builder_.fail(
        fmt::format("several conditions on one string need more than {} states together; lower its lengths "
                    "or ask for less at once",
                    kMostStates));
  }
  State state;
  if (automata_[0]->state(place[0]).complete) {
    uint32_t met = 0;
    for (size_t i = 1; i < place.size(); ++i) {
      if (automata_[i]->state(place[i]).complete) met |= uint32_t{1} << (i - 1);
    }
    state.met = met;
  }
  states_.push_back(std::move(state));
  places_.push_back(place);
  return found->second;
}

void TextProduct::explore() {
  if (!states_.empty()) return;
  Place start;
  for (const auto& automaton : automata_) start.push_back(automaton->start());
  visit(start);
  Place next;
  Place last;  // most bytes lead where the byte before them does
  for (uint32_t at = 0; at < places_.size(); ++at) {
    for (int byte = 0; byte < 0xFF; ++byte) {
      next.clear();
      for (size_t i = 0; i < automata_.size(); ++i) {
        next.push_back(automata_[i]->step(places_[at][i], static_cast<uint8_t>(byte)));
        if (next[0] == StackPool::kDead) break;
      }
      if (next[0] == StackPool::kDead) continue;
      const auto here = static_cast<uint8_t>(byte);
      const auto& edges = states_[at].edges;
      if (!edges.empty() && edges.back().high + 1 == byte && next == last) {
        states_[at].edges.back().high = here;
        continue;
      }
      const uint32_t target = visit(next);
      states_[at].edges.push_back({here, here, target});
      last = next;
    }
  }
}

std::set<uint32_t> TextProduct::classes() {
  explore();
  std::set<uint32_t> classes;
  for (const State& state : states_) {
    if (state.met) classes.insert(*state.met);
  }
  return classes;
}

TextProduct::Expr TextProduct::texts(const std::function<bool(uint32_t)>& wanted) {
  explore();
  std::vector<std::vector<uint32_t>> before(states_.size());
  std::vector<bool> leads(states_.size(), false);
  std::vector<uint32_t> todo;
  for (uint32_t at = 0; at < states_.size(); ++at) {
    for (const Edge& edge : states_[at].edges) before[edge.target].push_back(at);
    if (!states_[at].met || !wanted(*states_[at].met)) continue;
    leads[at] = true;
    todo.push_back(at);
  }
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const uint32_t previous : before[at]) {
      if (leads[previous]) continue;
      leads[previous] = true;
      todo.push_back(previous);
    }
  }
  if (!leads[0]) return builder_.nothing();
  std::vector<std::optional<GrammarBuilder::RuleId>> rules(states_.size());
  for (uint32_t at = 0; at < states_.size(); ++at) {
    if (leads[at]) rules[at] = builder_.declare("string");
  }
  for (uint32_t at = 0; at < states_.size(); ++at) {
    if (!rules[at]) continue;
    std::vector<Expr> ways;
    if (states_[at].met && wanted(*states_[at].met)) ways.push_back(builder_.empty());
    for (const Edge& edge : states_[at].edges) {
      if (!rules[edge.target]) continue;
      ways.push_back(
          builder_.sequence({builder_.byte(edge.low, edge.high), builder_.ref(*rules[edge.target])}));
    }
    builder_.define(*rules[at], builder_.either(std::move(ways)));
  }
  return builder_.ref(*rules[0]);
}

}  // namespace qwench
