#include "grammar/grammar_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/grammar_checks.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr uint16_t kDeepestExpression = 1500;

}  // namespace

void GrammarBuilder::fail(const std::string& sentence) const {
  throw Error(ErrorKind::invalid_argument, fmt::format("{}: {}", what_, sentence));
}

GrammarBuilder::Expr GrammarBuilder::add(Expression expression) {
  if (expressions_.size() >= kMostExpressions)
    fail(fmt::format("it is too large: more than {} parts", kMostExpressions));
  for (const Expr part : expression.parts) {
    const uint16_t depth = expressions_[static_cast<size_t>(part)].depth;
    expression.depth = std::max<uint16_t>(expression.depth, static_cast<uint16_t>(depth + 1));
  }
  const auto part_may_be_empty = [&](Expr part) {
    return expressions_[static_cast<size_t>(part)].may_be_empty;
  };
  switch (expression.kind) {
    case Kind::empty:
    case Kind::ref:
      break;
    case Kind::nothing:
    case Kind::literal:
    case Kind::chars:
    case Kind::special:
      expression.may_be_empty = false;
      break;
    case Kind::sequence:
      expression.may_be_empty =
          std::all_of(expression.parts.begin(), expression.parts.end(), part_may_be_empty);
      break;
    case Kind::either:
      expression.may_be_empty =
          std::any_of(expression.parts.begin(), expression.parts.end(), part_may_be_empty);
      break;
    case Kind::repeat:
      expression.may_be_empty = expression.least == 0 || part_may_be_empty(expression.parts[0]);
      break;
  }
  if (expression.depth > kDeepestExpression) fail("it is nested too deeply");
  expressions_.push_back(std::move(expression));
  return static_cast<Expr>(expressions_.size() - 1);
}

GrammarBuilder::Expr GrammarBuilder::empty() { return add({.kind = Kind::empty}); }
GrammarBuilder::Expr GrammarBuilder::nothing() { return add({.kind = Kind::nothing}); }

GrammarBuilder::Expr GrammarBuilder::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  texts_.emplace_back(bytes);
  return add({.kind = Kind::literal, .what = static_cast<uint32_t>(texts_.size() - 1)});
}

GrammarBuilder::Expr GrammarBuilder::special(std::string text) {
  if (text.empty()) return empty();
  texts_.push_back(std::move(text));
  return add({.kind = Kind::special, .what = static_cast<uint32_t>(texts_.size() - 1)});
}

GrammarBuilder::Expr GrammarBuilder::chars(const CodeRanges& set) {
  if (set.empty()) return nothing();
  sets_.push_back(utf8_sequences(set));
  return add({.kind = Kind::chars, .what = static_cast<uint32_t>(sets_.size() - 1)});
}

GrammarBuilder::Expr GrammarBuilder::byte(uint8_t low, uint8_t high) {
  sets_.push_back({ByteSequence{{low, high}}});
  return add({.kind = Kind::chars, .what = static_cast<uint32_t>(sets_.size() - 1)});
}

GrammarBuilder::Expr GrammarBuilder::sequence(std::vector<Expr> parts) {
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts[0];
  return add({.kind = Kind::sequence, .parts = std::move(parts)});
}

GrammarBuilder::Expr GrammarBuilder::either(std::vector<Expr> alternatives) {
  if (alternatives.empty()) return nothing();
  if (alternatives.size() == 1) return alternatives[0];
  return add({.kind = Kind::either, .parts = std::move(alternatives)});
}

GrammarBuilder::Expr GrammarBuilder::repeat(Expr part, int least, int most) {
  if (most == 0) return empty();
  return add({.kind = Kind::repeat, .least = least, .most = most, .parts = {part}});
}

GrammarBuilder::RuleId GrammarBuilder::declare(std::string name) {
  if (rules_.size() >= kMostRules) fail(fmt::format("it is too large: more than {} rules", kMostRules));
  rules_.push_back({std::move(name), -1});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarBuilder::define(RuleId rule, Expr body) { rules_[rule].body = body; }

GrammarBuilder::Expr GrammarBuilder::ref(RuleId rule) { return add({.kind = Kind::ref, .what = rule}); }

GrammarBuilder::Expr GrammarBuilder::rule(std::string name, Expr body) {
  const RuleId id = declare(std::move(name));
  define(id, body);
  return ref(id);
}

/// Thompson's construction (1968, "Regular expression search algorithm"), rule by rule.
class GrammarLowering {
 public:
  explicit GrammarLowering(const GrammarBuilder& builder) : builder_(builder) {}

  Grammar lower(GrammarBuilder::RuleId root) {
    for (const auto& rule : builder_.rules_) {
      if (rule.body < 0) builder_.fail(fmt::format("the rule \"{}\" is used but not defined", rule.name));
      const uint32_t start = add_node();
      const uint32_t end = add_node();
      grammar_.rules.push_back({start, end});
      lower(rule.body, start, end);
    }
    grammar_.root = root;
    join_edges();
    return std::move(grammar_);
  }

 private:
  using Kind = GrammarBuilder::Kind;
  using Edge = Grammar::Edge;

  uint32_t add_node() {
    if (out_.size() >= GrammarBuilder::kMostNodes) {
      builder_.fail(fmt::format("it is too large: more than {} states; lower its counts of repetitions",
                                GrammarBuilder::kMostNodes));
    }
    grammar_.nodes.push_back({.alias = static_cast<uint32_t>(out_.size())});
    out_.emplace_back();
    return static_cast<uint32_t>(out_.size() - 1);
  }

  void add_edge(uint32_t from, Edge edge) {
    if (++edges_ > GrammarBuilder::kMostEdges)
      builder_.fail(fmt::format("it is too large: more than {} transitions", GrammarBuilder::kMostEdges));
    out_[from].push_back(edge);
  }
  void join(uint32_t from, uint32_t to) { add_edge(from, {.kind = Grammar::EdgeKind::empty, .target = to}); }

  void lower(GrammarBuilder::Expr id, uint32_t from, uint32_t to) {
    const auto& expression = builder_.expressions_[static_cast<size_t>(id)];
    switch (expression.kind) {
      case Kind::empty:
        return join(from, to);
      case Kind::nothing:
        return;
      case Kind::literal: {
        const std::string& text = builder_.texts_[expression.what];
        for (size_t i = 0; i < text.size(); ++i) {
          const uint32_t next = i + 1 == text.size() ? to : add_node();
          const auto byte = static_cast<uint8_t>(text[i]);
          add_edge(from, {.kind = Grammar::EdgeKind::bytes, .low = byte, .high = byte, .target = next});
          from = next;
        }
        return;
      }
      case Kind::chars:
        return lower_chars(builder_.sets_[expression.what], from, to);
      case Kind::special:
        grammar_.specials.push_back(builder_.texts_[expression.what]);
        return add_edge(from, {.kind = Grammar::EdgeKind::special,
                               .target = to,
                               .what = static_cast<uint32_t>(grammar_.specials.size() - 1)});
      case Kind::sequence:
        for (size_t i = 0; i < expression.parts.size(); ++i) {
          const uint32_t next = i + 1 == expression.parts.size() ? to : add_node();
          lower(expression.parts[i], from, next);
          from = next;
        }
        return;
      case Kind::either:
        for (const GrammarBuilder::Expr part : expression.parts) lower(part, from, to);
        return;
      case Kind::repeat:
        return lower_repeat(expression.parts[0], expression.least, expression.most, from, to);
      case Kind::ref:
        return add_edge(from, {.kind = Grammar::EdgeKind::call, .target = to, .what = expression.what});
    }
  }

  /// Sequences share the states behind equal continuation bytes.
  void lower_chars(const std::vector<ByteSequence>& sequences, uint32_t from, uint32_t to) {
    std::vector<uint32_t> any(4, to);  // [k]: k more continuation bytes, any of them
    const auto node_for_any = [&](size_t bytes) {
      for (size_t k = 1; k <= bytes; ++k) {
        if (any[k] != to) continue;
        any[k] = add_node();
        add_edge(any[k], {.kind = Grammar::EdgeKind::bytes, .low = 0x80, .high = 0xBF, .target = any[k - 1]});
      }
      return any[bytes];
    };
    for (const ByteSequence& sequence : sequences) {
      size_t free = 0;
      while (free + 1 < sequence.size() && sequence[sequence.size() - 1 - free].low == 0x80 &&
             sequence[sequence.size() - 1 - free].high == 0xBF)
        ++free;
      uint32_t at = from;
      const size_t fixed = sequence.size() - free;
      for (size_t i = 0; i < fixed; ++i) {
        const uint32_t next = i + 1 == fixed ? node_for_any(free) : add_node();
        add_edge(at, {.kind = Grammar::EdgeKind::bytes,
                      .low = sequence[i].low,
                      .high = sequence[i].high,
                      .target = next});
        at = next;
      }
    }
  }

  void lower_repeat(GrammarBuilder::Expr part, int least, int most, uint32_t from, uint32_t to) {
    const bool unbounded = most == GrammarBuilder::kUnbounded;
    const int copies = unbounded ? least : most;
    const bool takes_bytes = !builder_.expressions_[static_cast<size_t>(part)].may_be_empty;
    uint32_t block = 0;  // of the iteration that later ones are aliases of
    for (int i = 0; i < copies; ++i) {
      const uint32_t begin = add_node();
      join(from, begin);
      const uint32_t end = add_node();
      lower(part, begin, end);
      from = end;
      const bool required = i < least;
      if (i >= least) join(begin, to);
      const int left = (required ? least : most) - i;
      if (i == 0 || i == least) {
        block = begin;
      } else if (takes_bytes && left > Grammar::kAliasBytes) {
        for (uint32_t node = begin; node < out_.size(); ++node)
          grammar_.nodes[node].alias = grammar_.nodes[block + (node - begin)].alias;
      }
    }
    if (unbounded) {
      const uint32_t loop = add_node();
      const uint32_t end = add_node();
      join(from, loop);
      lower(part, loop, end);
      join(end, loop);
      from = loop;
    }
    join(from, to);
  }

  void join_edges() {
    grammar_.edges.reserve(edges_);
    for (size_t i = 0; i < out_.size(); ++i) {
      grammar_.nodes[i].first_edge = static_cast<uint32_t>(grammar_.edges.size());
      grammar_.nodes[i].edge_count = static_cast<uint32_t>(out_[i].size());
      grammar_.edges.insert(grammar_.edges.end(), out_[i].begin(), out_[i].end());
    }
  }

  const GrammarBuilder& builder_;
  Grammar grammar_;
  std::vector<std::vector<Edge>> out_;  // by node
  size_t edges_ = 0;
};

std::shared_ptr<const Grammar> GrammarBuilder::build(RuleId root, const std::vector<RuleId>& each) {
  Grammar grammar = GrammarLowering(*this).lower(root);
  if (const auto rule = find_left_recursion(grammar)) {
    fail(
        fmt::format("the rule \"{}\" is left-recursive: it can begin with itself before anything is taken; "
                    "write repetitions with * or +, or put the recursion last",
                    rules_[*rule].name));
  }
  find_depths(grammar);
  for (const RuleId rule : each) {
    if (grammar.nodes[grammar.rules[rule].start].depth == kNeverEnds)
      fail(fmt::format("no text satisfies {}", rules_[rule].name));
  }
  const uint32_t depth = grammar.nodes[grammar.rules[root].start].depth;
  if (depth == kNeverEnds) fail("no text satisfies it");
  if (depth > Grammar::kDeepest)
    fail(fmt::format("its shortest text nests {} deep, more than {}", depth, Grammar::kDeepest));
  return std::make_shared<const Grammar>(std::move(grammar));
}

}  // namespace qwench
