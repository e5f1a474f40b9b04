#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace qwench {

/// A language of byte strings as a pushdown automaton: each rule is a non-deterministic automaton over bytes
/// whose edges may call other rules. Made by GrammarBuilder; no rule is left-recursive, and from every node
/// the end of its rule can be reached. Immutable, thread-safe.
class Grammar {
 public:
  enum class EdgeKind : uint8_t {
    bytes,    ///< takes one byte of [low, high]
    empty,    ///< takes nothing
    call,     ///< takes a text of the rule `what`
    special,  ///< takes the added token whose text is specials[what]; its bytes where there is no such token
  };
  struct Edge {
    EdgeKind kind;
    uint8_t low = 0;
    uint8_t high = 0;
    uint32_t target = 0;
    uint32_t what = 0;
  };
  struct Node {
    uint32_t first_edge = 0;
    uint32_t edge_count = 0;
    /// A node that no text of at most kAliasBytes tells from this one, the frames above it apart: early
    /// iterations of long repetitions share one. Itself for all others.
    uint32_t alias = 0;
    /// The fewest frames that a text from here to the end of the rule needs.
    uint16_t depth = 0;
  };
  struct Rule {
    uint32_t start = 0;
    uint32_t end = 0;  ///< a node without edges
  };

  static constexpr int kAliasBytes = 256;
  /// Calls that may be open at once: how deep a text nests.
  static constexpr int kDeepest = 256;

  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<Rule> rules;
  std::vector<std::string> specials;
  uint32_t root = 0;  ///< the rule whose texts are the language

  size_t bytes() const {
    return sizeof(Grammar) + nodes.size() * sizeof(Node) + edges.size() * sizeof(Edge) +
           rules.size() * sizeof(Rule);
  }
};

/// Whether `text` is of the language, special tokens taken as their bytes.
bool accepts(const Grammar& grammar, std::string_view text);

}  // namespace qwench
