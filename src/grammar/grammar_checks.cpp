#include "grammar/grammar_checks.h"

#include <algorithm>
#include <deque>
#include <span>

namespace qwench {
namespace {

using EdgeKind = Grammar::EdgeKind;

std::span<const Grammar::Edge> edges_of(const Grammar& grammar, uint32_t node) {
  return {grammar.edges.data() + grammar.nodes[node].first_edge, grammar.nodes[node].edge_count};
}

/// Visits what can be reached from a rule's start while nothing is taken.
template <typename OnCall>
bool walk_without_bytes(const Grammar& grammar, uint32_t rule, const std::vector<bool>& nullable,
                        std::vector<uint32_t>& seen, uint32_t mark, OnCall&& on_call) {
  bool reaches_end = false;
  std::vector<uint32_t> todo{grammar.rules[rule].start};
  seen[todo[0]] = mark;
  const auto visit = [&](uint32_t node) {
    if (seen[node] == mark) return;
    seen[node] = mark;
    todo.push_back(node);
  };
  while (!todo.empty()) {
    const uint32_t node = todo.back();
    todo.pop_back();
    reaches_end = reaches_end || node == grammar.rules[rule].end;
    for (const Grammar::Edge& edge : edges_of(grammar, node)) {
      if (edge.kind == EdgeKind::empty) visit(edge.target);
      if (edge.kind != EdgeKind::call) continue;
      on_call(edge.what);
      if (nullable[edge.what]) visit(edge.target);
    }
  }
  return reaches_end;
}

}  // namespace

std::optional<uint32_t> find_left_recursion(const Grammar& grammar) {
  const auto count = static_cast<uint32_t>(grammar.rules.size());
  std::vector<bool> nullable(count, false);
  std::vector<uint32_t> seen(grammar.nodes.size(), 0);
  uint32_t mark = 0;
  std::vector<std::vector<uint32_t>> callers(count);
  std::deque<uint32_t> todo;
  std::vector<bool> queued(count, true);
  for (uint32_t rule = 0; rule < count; ++rule) {
    todo.push_back(rule);
    // Every call counts: what is behind one may become reachable.
    const uint32_t end =
        rule + 1 < count ? grammar.rules[rule + 1].start : static_cast<uint32_t>(grammar.nodes.size());
    for (uint32_t node = grammar.rules[rule].start; node < end; ++node) {
      for (const Grammar::Edge& edge : edges_of(grammar, node)) {
        if (edge.kind == EdgeKind::call && (callers[edge.what].empty() || callers[edge.what].back() != rule))
          callers[edge.what].push_back(rule);
      }
    }
  }
  while (!todo.empty()) {
    const uint32_t rule = todo.front();
    todo.pop_front();
    queued[rule] = false;
    if (nullable[rule] || !walk_without_bytes(grammar, rule, nullable, seen, ++mark, [](uint32_t) {}))
      continue;
    nullable[rule] = true;
    for (const uint32_t caller : callers[rule]) {
      if (nullable[caller] || queued[caller]) continue;
      queued[caller] = true;
      todo.push_back(caller);
    }
  }

  std::vector<std::vector<uint32_t>> begins(count);
  for (uint32_t rule = 0; rule < count; ++rule) {
    walk_without_bytes(grammar, rule, nullable, seen, ++mark,
                       [&](uint32_t called) { begins[rule].push_back(called); });
  }
  enum class Colour : uint8_t { fresh, open, done };
  std::vector<Colour> colours(count, Colour::fresh);
  struct Visit {
    uint32_t rule;
    size_t next;
  };
  for (uint32_t first = 0; first < count; ++first) {
    if (colours[first] != Colour::fresh) continue;
    std::vector<Visit> path{{first, 0}};
    colours[first] = Colour::open;
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == begins[visit.rule].size()) {
        colours[visit.rule] = Colour::done;
        path.pop_back();
        continue;
      }
      const uint32_t called = begins[visit.rule][visit.next++];
      if (colours[called] == Colour::open) return called;
      if (colours[called] == Colour::done) continue;
      colours[called] = Colour::open;
      path.push_back({called, 0});
    }
  }
  return std::nullopt;
}

std::vector<bool> find_tails(const Grammar& grammar) {
  std::vector<bool> tails(grammar.nodes.size(), false);
  std::vector<std::vector<uint32_t>> before(grammar.nodes.size());
  std::vector<uint32_t> todo;
  for (uint32_t node = 0; node < grammar.nodes.size(); ++node) {
    const auto edges = edges_of(grammar, node);
    if (edges.size() == 1 && edges[0].kind == EdgeKind::empty) before[edges[0].target].push_back(node);
  }
  for (const Grammar::Rule& rule : grammar.rules) {
    tails[rule.end] = true;
    todo.push_back(rule.end);
  }
  while (!todo.empty()) {
    const uint32_t node = todo.back();
    todo.pop_back();
    for (const uint32_t previous : before[node]) {
      if (tails[previous]) continue;
      tails[previous] = true;
      todo.push_back(previous);
    }
  }
  return tails;
}

void find_depths(Grammar& grammar) {
  const auto count = static_cast<uint32_t>(grammar.nodes.size());
  const std::vector<bool> tails = find_tails(grammar);
  std::vector<std::vector<uint32_t>> before(count);  // nodes whose depth depends on this one's
  for (uint32_t node = 0; node < count; ++node) {
    grammar.nodes[node].depth = kNeverEnds;
    for (const Grammar::Edge& edge : edges_of(grammar, node)) {
      before[edge.target].push_back(node);
      if (edge.kind == EdgeKind::call) before[grammar.rules[edge.what].start].push_back(node);
    }
  }
  const auto depth_through = [&](const Grammar::Edge& edge) -> uint32_t {
    const uint32_t behind = grammar.nodes[edge.target].depth;
    if (edge.kind != EdgeKind::call || behind == kNeverEnds) return behind;
    const uint32_t inside = grammar.nodes[grammar.rules[edge.what].start].depth;
    if (inside == kNeverEnds) return kNeverEnds;
    const uint32_t depth = std::max(behind, inside + (tails[edge.target] ? 0U : 1U));
    return depth > Grammar::kDeepest + 1 ? Grammar::kDeepest + 1 : depth;
  };
  std::deque<uint32_t> todo;
  for (const Grammar::Rule& rule : grammar.rules) {
    grammar.nodes[rule.end].depth = 0;
    todo.push_back(rule.end);
  }
  while (!todo.empty()) {
    const uint32_t changed = todo.front();
    todo.pop_front();
    for (const uint32_t node : before[changed]) {
      uint32_t best = grammar.nodes[node].depth;
      for (const Grammar::Edge& edge : edges_of(grammar, node)) best = std::min(best, depth_through(edge));
      if (best >= grammar.nodes[node].depth) continue;
      grammar.nodes[node].depth = static_cast<uint16_t>(best);
      todo.push_back(node);
    }
  }
  for (uint32_t node = 0; node < count; ++node) {
    Grammar::Edge* begin = grammar.edges.data() + grammar.nodes[node].first_edge;
    Grammar::Edge* end = begin + grammar.nodes[node].edge_count;
    end = std::remove_if(begin, end,
                         [&](const Grammar::Edge& edge) { return depth_through(edge) == kNeverEnds; });
    grammar.nodes[node].edge_count = static_cast<uint32_t>(end - begin);
  }
}

}  // namespace qwench
