#include "text/bpe_piece_cache.h"

#include <cstring>

#include "text/bpe_vocabulary.h"

namespace qwench {

PieceCache::PieceCache() : short_(kShortSlots), long_(kLongSlots) {}

/// Different pieces of one length have different keys.
PieceCache::Key PieceCache::short_key(std::string_view piece) {
  const char* p = piece.data();
  const size_t n = piece.size();
  Key key{0, 0};
  if (n >= 8) {
    std::memcpy(&key.low, p, 8);
    std::memcpy(&key.high, p + n - 8, 8);
  } else if (n >= 4) {
    uint32_t first;
    uint32_t last;
    std::memcpy(&first, p, 4);
    std::memcpy(&last, p + n - 4, 4);
    key.low = uint64_t{last} << 32 | first;
  } else {
    const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(p[i])}; };
    key.low = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
  }
  return key;
}

size_t PieceCache::short_place(const Key& key, size_t length) {
  const uint64_t h = (key.low ^ (key.high * 0xC2B2AE3D27D4EB4FULL) ^ length << 56) * 0x9E3779B97F4A7C15ULL;
  return (h ^ h >> 32) >> 8 & (kShortSlots - 1);
}

bool PieceCache::append(std::string_view piece, std::vector<TokenId>& out) const {
  if (piece.size() <= 16) {
    const Key key = short_key(piece);
    const ShortSlot& slot = short_[short_place(key, piece.size())];
    if (slot.length == piece.size() && slot.key.low == key.low && slot.key.high == key.high) {
      out.insert(out.end(), slot.ids, slot.ids + slot.count);
      return true;
    }
  }
  if (piece.size() > kLongest) return false;
  const uint64_t h = hash_bytes(piece);
  const LongSlot& slot = long_[h & (kLongSlots - 1)];
  if (slot.hash != h || std::string_view(keys_).substr(slot.key_begin, slot.key_length) != piece)
    return false;
  const auto first = ids_.begin() + static_cast<ptrdiff_t>(slot.ids_begin);
  out.insert(out.end(), first, first + slot.count);
  return true;
}

void PieceCache::insert(std::string_view piece, std::span<const TokenId> ids) {
  if (piece.size() <= 16 && ids.size() <= 3) {
    const Key key = short_key(piece);
    ShortSlot& slot = short_[short_place(key, piece.size())];
    slot.key = key;
    slot.length = static_cast<uint8_t>(piece.size());
    slot.count = static_cast<uint8_t>(ids.size());
    std::copy(ids.begin(), ids.end(), slot.ids);
    return;
  }
  if (piece.size() > kLongest) return;
  if (keys_.size() + piece.size() > kArena || ids_.size() + ids.size() > kArena) {
    keys_.clear();
    ids_.clear();
    long_.assign(kLongSlots, LongSlot{});
  }
  const uint64_t h = hash_bytes(piece);
  long_[h & (kLongSlots - 1)] = {h, static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(ids_.size()),
                                 static_cast<uint16_t>(piece.size()), static_cast<uint16_t>(ids.size())};
  keys_ += piece;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

}  // namespace qwench
