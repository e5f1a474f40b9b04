#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// Ids at and above this are refused: tables are sized by the largest id.
inline constexpr int64_t kMaxTokenId = int64_t{1} << 22;

uint64_t hash_bytes(std::string_view bytes) noexcept;

/// Token texts and ids, both ways. The texts lie in one arena; the hash table holds ids.
class Vocabulary {
 public:
  /// Room for so many tokens and bytes of text.
  void reserve(size_t tokens, size_t bytes);

  enum class Added { yes, text_taken, id_taken };
  /// `id` must be in [0, kMaxTokenId).
  Added add(std::string_view token, TokenId id);

  std::optional<TokenId> find(std::string_view token) const;
  bool has(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < places_.size() &&
           places_[static_cast<size_t>(id)].length != kNone;
  }
  /// Empty for an id without a token.
  std::string_view text(TokenId id) const {
    if (!has(id)) return {};
    const Place place = places_[static_cast<size_t>(id)];
    return {arena_.data() + place.begin, place.length};
  }
  int size() const { return static_cast<int>(places_.size()); }  ///< 1 + the largest id
  size_t count() const { return count_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Place {
    uint32_t begin = 0;
    uint32_t length = kNone;
  };
  struct Slot {
    uint32_t tag = 0;  // of the hash
    TokenId id = -1;
  };
  void grow(size_t slots);

  std::string arena_;
  std::vector<Place> places_;  // by id
  std::vector<Slot> slots_;    // a power of two
  size_t count_ = 0;
};

}  // namespace qwench
