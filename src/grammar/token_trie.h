#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

class Tokenizer;

/// The bytes of a vocabulary's tokens, as a tree in pre-order. Immutable, thread-safe.
class TokenTrie {
 public:
  struct Node {
    uint32_t next;   ///< the node behind this one's subtree
    TokenId token;   ///< that ends here; -1: none
    uint16_t depth;  ///< bytes from the root, at least 1
    uint8_t byte;
    bool has_more;  ///< more tokens of the same bytes: see others()
  };

  /// Ids without bytes and those longer than kLongestToken are left out.
  TokenTrie(std::vector<std::pair<std::string, TokenId>> tokens, int vocabulary_size);
  /// The ordinary tokens of a tokenizer: all but the added ones. At most `valid_ids` ids count.
  static TokenTrie of(const Tokenizer& tokenizer, int valid_ids);

  static constexpr size_t kLongestToken = 256;  // bytes

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::pair<uint32_t, TokenId>> others() const { return others_; }  ///< (node, id), ascending
  size_t deepest() const { return deepest_; }
  int vocabulary_size() const { return vocabulary_size_; }
  std::string_view bytes_of(TokenId id) const;  ///< empty for ids that are not in the tree

 private:
  std::vector<Node> nodes_;
  std::vector<std::pair<uint32_t, TokenId>> others_;
  size_t deepest_ = 0;
  int vocabulary_size_;
  std::string arena_;
  std::vector<uint32_t> begins_;  // [vocabulary_size + 1], into arena_
};

}  // namespace qwench
