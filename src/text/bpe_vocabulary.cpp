#include "text/bpe_vocabulary.h"

#include <bit>
#include <cstring>

#include "qwench/error.h"

namespace qwench {

uint64_t hash_bytes(std::string_view bytes) noexcept {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ULL;
  uint64_t h = bytes.size() * kMultiplier;
  const char* p = bytes.data();
  size_t left = bytes.size();
  const auto mix = [&](uint64_t word) {
    h = (h ^ word) * kMultiplier;
    h ^= h >> 29;
  };
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    mix(word);
  }
  h *= kMultiplier;
  return h ^ (h >> 32);
}

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  arena_.reserve(bytes);
  places_.reserve(tokens);
  if (tokens * 2 > slots_.size()) grow(std::bit_ceil(tokens * 2));
}

void Vocabulary::grow(size_t slots) {
  slots_.assign(slots, Slot{});
  for (size_t id = 0; id < places_.size(); ++id) {
    if (places_[id].length == kNone) continue;
    const uint64_t h = hash_bytes(text(static_cast<TokenId>(id)));
    size_t i = h & (slots - 1);
    while (slots_[i].id >= 0) i = (i + 1) & (slots - 1);
    slots_[i] = {static_cast<uint32_t>(h >> 32), static_cast<TokenId>(id)};
  }
}

Vocabulary::Added Vocabulary::add(std::string_view token, TokenId id) {
  if (has(id)) return Added::id_taken;
  if ((count_ + 1) * 2 > slots_.size()) grow(std::max<size_t>(64, slots_.size() * 2));
  if (arena_.size() + token.size() >= kNone)
    throw Error(ErrorKind::unsupported, "a vocabulary of more than 4 GB");
  const uint64_t h = hash_bytes(token);
  const auto tag = static_cast<uint32_t>(h >> 32);
  size_t i = h & (slots_.size() - 1);
  for (; slots_[i].id >= 0; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].tag == tag && text(slots_[i].id) == token) return Added::text_taken;
  }
  slots_[i] = {tag, id};
  if (static_cast<size_t>(id) >= places_.size()) places_.resize(static_cast<size_t>(id) + 1);
  places_[static_cast<size_t>(id)] = {static_cast<uint32_t>(arena_.size()),
                                      static_cast<uint32_t>(token.size())};
  arena_ += token;
  ++count_;
  return Added::yes;
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t h = hash_bytes(token);
  const auto tag = static_cast<uint32_t>(h >> 32);
  for (size_t i = h & (slots_.size() - 1); slots_[i].id >= 0; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].tag == tag && text(slots_[i].id) == token) return slots_[i].id;
  }
  return std::nullopt;
}

}  // namespace qwench
