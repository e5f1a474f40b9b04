#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_vocabulary.h"

namespace qwench {

/// How pieces become tokens, as the "model" of a tokenizer.json says it. An empty string is none.
struct BpeOptions {
  std::string unk_token;
  bool fuse_unk = false;       ///< unknown characters in a row are one token
  bool byte_fallback = false;  ///< an unknown character becomes its bytes, "<0xE4>", where those are tokens
  bool ignore_merges = false;  ///< a piece that is a token is that token
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
};

/// Buffers of one encoding thread, kept between calls.
struct BpeScratch {
  std::vector<TokenId> ids;     // symbols of the piece
  std::vector<uint32_t> ranks;  // of the pair that begins here
  std::vector<TokenId> merged;  // what that pair becomes
  std::vector<uint32_t> next;   // symbols as a linked list, for long pieces
  std::vector<uint32_t> previous;
  std::string text;
};

/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909): the adjacent pair of the lowest rank is
/// merged, the leftmost of equal ones first, until none is left. n log n in the length of the piece.
/// Immutable.
class Bpe {
 public:
  struct Merge {
    TokenId left;
    TokenId right;
    TokenId result;
    uint32_t rank;
  };

  /// `what` begins the message of an Error (malformed) that append_text throws where it needs an unk_token
  /// that is not in the vocabulary.
  Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options, const std::string& what);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const BpeOptions& options() const { return options_; }

  /// Whether append_bytes may be used: symbols are single bytes of GPT-2's alphabet and nothing else.
  bool works_on_bytes() const { return works_on_bytes_; }

  /// The token that a piece is without any merge, where the model asks for that (ignore_merges). `raw`: the
  /// piece is raw bytes, as for append_bytes.
  std::optional<TokenId> whole(std::string_view piece, bool raw, BpeScratch& scratch) const;

  /// Appends the tokens that merges make of a piece written in the vocabulary's own characters.
  void append_text(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;
  /// The same for a piece of raw bytes, each of which stands for its character in GPT-2's alphabet.
  void append_bytes(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const;

 private:
  struct Slot {
    uint64_t pair = kFree;
    uint32_t rank = 0;
    TokenId result = 0;
  };
  static constexpr uint64_t kFree = UINT64_MAX;

  static uint64_t pair_key(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t pair) const {
    const uint64_t h = pair * 0x9E3779B97F4A7C15ULL;
    return (h ^ h >> 32) & (slots_.size() - 1);
  }
  /// The merge of a pair, or null.
  const Slot* find_merge(TokenId left, TokenId right) const {
    const uint64_t pair = pair_key(left, right);
    for (size_t i = slot_of(pair);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].pair == pair) return &slots_[i];
      if (slots_[i].pair == kFree) return nullptr;
    }
  }
  void add_symbols(std::string_view piece, BpeScratch& scratch) const;
  void merge(BpeScratch& scratch, std::vector<TokenId>& out) const;
  void merge_short(BpeScratch& scratch, std::vector<TokenId>& out) const;
  void merge_long(BpeScratch& scratch, std::vector<TokenId>& out) const;

  Vocabulary vocabulary_;
  BpeOptions options_;
  std::vector<Slot> slots_;                     // a power of two, at most half full
  std::array<TokenId, 256> byte_tokens_{};      // of GPT-2's alphabet; -1 = none
  std::array<TokenId, 256> fallback_tokens_{};  // "<0x00>".."<0xFF>"; -1 = none
  static constexpr TokenId kMissing = -2;
  TokenId unk_ = -1;  // -1: none is named; kMissing: the one named is no token, an error where it is needed
  std::string what_;  // for that error
  bool works_on_bytes_ = false;
};

}  // namespace qwench
