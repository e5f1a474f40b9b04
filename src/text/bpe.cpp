#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <unordered_map>

#include "checkpoint/printable.h"
#include "qwench/error.h"
#include "text/bpe_byte_alphabet.h"
#include "text/unicode_classes.h"

namespace qwench {
namespace {

constexpr uint32_t kNoMerge = UINT32_MAX;
// Up to here looking at every rank for each merge beats keeping a heap.
constexpr size_t kShortPiece = 64;

template <typename T>
using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<>>;

/// Places where a pair may merge, the lowest rank first and of one rank the leftmost. A long piece has many
/// places and few ranks: the places of a rank come mostly in order, so that they need no heap.
class MergeQueue {
 public:
  void push(uint32_t rank, uint32_t place) {
    const auto [found, added] = bucket_of_.emplace(rank, buckets_.size());
    if (added) buckets_.emplace_back();
    Bucket& bucket = buckets_[found->second];
    if (bucket.in_order.empty() || place > bucket.in_order.back()) {
      bucket.in_order.push_back(place);
    } else {
      bucket.rest.push(place);
    }
    if (!bucket.waits) ranks_.push(rank);
    bucket.waits = true;
  }

  /// False when nothing is left.
  bool pop(uint32_t& rank, uint32_t& place) {
    while (!ranks_.empty()) {
      rank = ranks_.top();
      Bucket& bucket = buckets_[bucket_of_.at(rank)];
      const bool ordered = bucket.taken < bucket.in_order.size();
      if (!bucket.rest.empty() && (!ordered || bucket.rest.top() < bucket.in_order[bucket.taken])) {
        place = bucket.rest.top();
        bucket.rest.pop();
        return true;
      }
      if (ordered) {
        place = bucket.in_order[bucket.taken++];
        return true;
      }
      bucket.waits = false;
      bucket.in_order.clear();
      bucket.taken = 0;
      ranks_.pop();
    }
    return false;
  }

 private:
  struct Bucket {
    std::vector<uint32_t> in_order;
    size_t taken = 0;        // of in_order
    MinHeap<uint32_t> rest;  // those that came out of order
    bool waits = false;      // its rank lies in ranks_
  };
  std::unordered_map<uint32_t, size_t> bucket_of_;
  std::vector<Bucket> buckets_;
  MinHeap<uint32_t> ranks_;
};

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options, const std::string& what)
    : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  slots_.resize(std::bit_ceil(std::max<size_t>(merges.size() * 2, 16)));
  for (const Merge& m : merges) {
    const uint64_t pair = pair_key(m.left, m.right);
    size_t i = slot_of(pair);
    while (slots_[i].pair != kFree && slots_[i].pair != pair) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {pair, m.rank, m.result};  // of equal pairs the last one counts
  }
  bool all_bytes = true;
  for (size_t b = 0; b < 256; ++b) {
    const auto byte = static_cast<char>(b);
    byte_tokens_[b] = vocabulary_.find(to_byte_alphabet({&byte, 1})).value_or(-1);
    fallback_tokens_[b] = vocabulary_.find(fmt::format("<0x{:02X}>", b)).value_or(-1);
    all_bytes &= byte_tokens_[b] >= 0;
  }
  if (!options_.unk_token.empty()) {
    unk_ = vocabulary_.find(options_.unk_token).value_or(kMissing);
    what_ = what;
  }
  works_on_bytes_ = options_.continuing_subword_prefix.empty() && options_.end_of_word_suffix.empty() &&
                    (all_bytes || (unk_ == -1 && !options_.byte_fallback));
}

std::optional<TokenId> Bpe::whole(std::string_view piece, bool raw, BpeScratch& scratch) const {
  if (!options_.ignore_merges || piece.empty()) return std::nullopt;
  if (!raw) return vocabulary_.find(piece);
  scratch.text.clear();
  append_byte_alphabet(scratch.text, piece);
  return vocabulary_.find(scratch.text);
}

void Bpe::append_bytes(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  scratch.ids.clear();
  for (const char b : piece) {
    const TokenId id = byte_tokens_[static_cast<uint8_t>(b)];
    if (id >= 0) scratch.ids.push_back(id);  // a byte without a token is dropped, as the reference does
  }
  merge(scratch, out);
}

void Bpe::append_text(std::string_view piece, BpeScratch& scratch, std::vector<TokenId>& out) const {
  scratch.ids.clear();
  add_symbols(piece, scratch);
  merge(scratch, out);
}

void Bpe::add_symbols(std::string_view piece, BpeScratch& scratch) const {
  bool unk_waiting = false;  // so that unknown characters can fuse
  for (size_t i = 0; i < piece.size();) {
    const size_t length = unicode::utf8_length(piece[i]);
    std::string_view symbol = piece.substr(i, length);
    const bool first = i == 0;
    i += length;
    const bool last = i >= piece.size();
    if ((!first && !options_.continuing_subword_prefix.empty()) ||
        (last && !options_.end_of_word_suffix.empty())) {
      scratch.text.clear();
      if (!first) scratch.text += options_.continuing_subword_prefix;
      scratch.text += symbol;
      if (last) scratch.text += options_.end_of_word_suffix;
      symbol = scratch.text;
    }
    if (const auto id = vocabulary_.find(symbol)) {
      if (unk_waiting) scratch.ids.push_back(unk_);
      unk_waiting = false;
      scratch.ids.push_back(*id);
      continue;
    }
    if (options_.byte_fallback) {
      const bool all = std::all_of(symbol.begin(), symbol.end(),
                                   [&](char b) { return fallback_tokens_[static_cast<uint8_t>(b)] >= 0; });
      if (all) {  // an unknown character that waits stays behind these bytes, as in the reference
        for (const char b : symbol) scratch.ids.push_back(fallback_tokens_[static_cast<uint8_t>(b)]);
        continue;
      }
    }
    if (unk_ == -1) continue;
    if (unk_ == kMissing) {
      throw Error(
          ErrorKind::malformed,
          fmt::format("{}: the text holds {}, which is in no token, and model.unk_token {} is not in the "
                      "vocabulary",
                      what_, printable(symbol), printable(options_.unk_token)));
    }
    if (unk_waiting && !options_.fuse_unk) scratch.ids.push_back(unk_);
    unk_waiting = true;
  }
  if (unk_waiting) scratch.ids.push_back(unk_);
}

void Bpe::merge(BpeScratch& scratch, std::vector<TokenId>& out) const {
  if (scratch.ids.size() <= 1) {
    out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
  } else if (scratch.ids.size() <= kShortPiece) {
    merge_short(scratch, out);
  } else {
    merge_long(scratch, out);
  }
}

void Bpe::merge_short(BpeScratch& scratch, std::vector<TokenId>& out) const {
  auto& ids = scratch.ids;
  auto& ranks = scratch.ranks;
  auto& merged = scratch.merged;
  size_t n = ids.size();
  ranks.resize(n);
  merged.resize(n);
  const auto look_up = [&](size_t i) {
    const Slot* m = find_merge(ids[i], ids[i + 1]);
    ranks[i] = m ? m->rank : kNoMerge;
    if (m) merged[i] = m->result;
  };
  for (size_t i = 0; i + 1 < n; ++i) look_up(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNoMerge) break;
    ids[best] = merged[best];
    const auto close = [&](auto& values) {
      std::copy(values.begin() + static_cast<ptrdiff_t>(best) + 2, values.begin() + static_cast<ptrdiff_t>(n),
                values.begin() + static_cast<ptrdiff_t>(best) + 1);
    };
    close(ids);
    close(ranks);
    close(merged);
    --n;
    if (best + 1 < n) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n));
}

void Bpe::merge_long(BpeScratch& scratch, std::vector<TokenId>& out) const {
  constexpr uint32_t kEnd = UINT32_MAX;
  constexpr TokenId kGone = -1;
  auto& ids = scratch.ids;
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  const size_t n = ids.size();
  next.resize(n);
  previous.resize(n);
  MergeQueue queue;
  const auto add = [&](uint32_t place) {
    const Slot* m = find_merge(ids[place], ids[next[place]]);
    if (m) queue.push(m->rank, place);
  };
  for (uint32_t i = 0; i < n; ++i) {
    next[i] = i + 1 < n ? i + 1 : kEnd;
    previous[i] = i > 0 ? i - 1 : kEnd;
    if (next[i] != kEnd) add(i);
  }
  uint32_t rank = 0;
  uint32_t place = 0;
  while (queue.pop(rank, place)) {
    if (ids[place] == kGone || next[place] == kEnd) continue;
    const uint32_t right = next[place];
    const Slot* m = find_merge(ids[place], ids[right]);
    if (!m || m->rank != rank) continue;  // one of the two has changed since
    ids[place] = m->result;
    ids[right] = kGone;
    next[place] = next[right];
    if (next[place] != kEnd) {
      previous[next[place]] = place;
      add(place);
    }
    if (previous[place] != kEnd) add(previous[place]);
  }
  for (uint32_t i = 0; i != kEnd; i = next[i]) out.push_back(ids[i]);
}

}  // namespace qwench
