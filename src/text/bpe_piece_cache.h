#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

/// Remembers the ids of pieces. Of fixed size, for one thread at a time; a new piece replaces the old one in
/// its slot. Most words have at most 16 bytes and few ids: those lie in one half of a cache line.
class PieceCache {
 public:
  PieceCache();

  /// Appends the ids and returns true when the piece is known.
  bool append(std::string_view piece, std::vector<TokenId>& out) const;
  void insert(std::string_view piece, std::span<const TokenId> ids);

 private:
  static constexpr size_t kShortSlots = 1 << 14;
  static constexpr size_t kLongSlots = 1 << 12;
  static constexpr size_t kLongest = 256;  // bytes of a piece worth remembering
  static constexpr size_t kArena = 1 << 20;

  struct Key {
    uint64_t low;
    uint64_t high;
  };
  struct ShortSlot {
    Key key;
    uint8_t length = 0;  // 0 = free
    uint8_t count = 0;
    TokenId ids[3];
  };
  struct LongSlot {
    uint64_t hash = 0;
    uint32_t key_begin = 0;
    uint32_t ids_begin = 0;
    uint16_t key_length = 0;  // 0 = free
    uint16_t count = 0;
  };
  static Key short_key(std::string_view piece);
  static size_t short_place(const Key& key, size_t length);

  std::vector<ShortSlot> short_;
  std::vector<LongSlot> long_;
  std::string keys_;
  std::vector<TokenId> ids_;
};

}  // namespace qwench
