#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qwench/sampling.h"
#include "text/byte_span.h"

namespace qwench {

/// A token that is found in the text as it stands, before the pre-tokenizer and the merges.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;      ///< control token: left out by decode(skip_special)
  bool single_word = false;  ///< not between word characters
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< looked for in the normalized text
};

/// A part of a text: a token, or what is left between tokens (id -1).
struct TextPart {
  ByteSpan span;
  TokenId id = -1;
};

/// Finds added tokens: the leftmost, of those the longest. Immutable and thread-safe.
class AddedTokenMatcher {
 public:
  /// `content` of each token is what is looked for; empty ones are left out.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  /// Cuts `text` (well-formed UTF-8) and appends the parts in order; no part between tokens is empty, though
  /// an empty text gives none. Tokens flagged special are looked for only inside the `trusted` spans (sorted,
  /// disjoint, not touching), the others everywhere; white space that lstrip and rstrip take along may lie
  /// outside. `skip_special`: special tokens in trusted spans are passed over as text.
  void split(std::string_view text, std::span<const ByteSpan> trusted, bool skip_special,
             std::vector<TextPart>& parts) const;

 private:
  /// The longest token at the start of `text`, or -1; a special one has to end within `trusted` bytes.
  int longest(std::string_view text, size_t trusted) const;

  std::vector<AddedToken> tokens_;
  std::vector<int> ends_;                            // by node of the trie: index into tokens_, -1 = none
  std::unordered_map<uint64_t, uint32_t> children_;  // node << 8 | byte
  bool begins_[256] = {};                            // bytes that a token begins with
};

}  // namespace qwench
