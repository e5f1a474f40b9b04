#include "grammar/code_ranges.h"

#include <algorithm>
#include <string>

#include "core/utf8.h"

namespace qwench {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;
constexpr char32_t kLastCode = 0x10FFFF;

void add_scalars(char32_t first, char32_t last, std::vector<CodeRange>& out) {
  last = std::min(last, kLastCode);
  if (first < kFirstSurrogate && first <= last)
    out.push_back({first, std::min<char32_t>(last, kFirstSurrogate - 1)});
  const char32_t above = std::max<char32_t>(first, kLastSurrogate + 1);
  if (above <= last) out.push_back({above, last});
}

/// A range whose encodings have the same length: cut where continuation bytes begin anew.
void split_encoded(char32_t first, char32_t last, std::vector<ByteSequence>& out) {
  std::string low;
  std::string high;
  append_utf8(low, first);
  append_utf8(high, last);
  for (size_t i = 1; i < low.size(); ++i) {
    const char32_t mask = (char32_t{1} << (6 * i)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      split_encoded(first, first | mask, out);
      return split_encoded((first | mask) + 1, last, out);
    }
    if ((last & mask) != mask) {
      split_encoded(first, (last & ~mask) - 1, out);
      return split_encoded(last & ~mask, last, out);
    }
  }
  ByteSequence sequence;
  for (size_t i = 0; i < low.size(); ++i)
    sequence.push_back({static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])});
  out.push_back(std::move(sequence));
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): made for it at every call
CodeRanges::CodeRanges(std::vector<CodeRange> ranges) {
  std::vector<CodeRange> scalars;
  for (const CodeRange& range : ranges) add_scalars(range.first, range.last, scalars);
  std::sort(scalars.begin(), scalars.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  for (const CodeRange& range : scalars) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

CodeRanges CodeRanges::all() { return CodeRanges({{0, kLastCode}}); }

bool CodeRanges::contains(char32_t code) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const CodeRange& range) { return range.first <= code && code <= range.last; });
}

CodeRanges CodeRanges::united(const CodeRanges& other) const {
  std::vector<CodeRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodeRanges(std::move(both));
}

CodeRanges CodeRanges::complement() const {
  std::vector<CodeRange> gaps;
  char32_t next = 0;
  for (const CodeRange& range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) gaps.push_back({next, kLastCode});
  return CodeRanges(std::move(gaps));
}

CodeRanges CodeRanges::intersected(const CodeRanges& other) const {
  std::vector<CodeRange> common;
  for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const CodeRange& a = ranges_[i];
    const CodeRange& b = other.ranges_[j];
    const char32_t first = std::max(a.first, b.first);
    const char32_t last = std::min(a.last, b.last);
    if (first <= last) common.push_back({first, last});
    a.last < b.last ? ++i : ++j;
  }
  return CodeRanges(std::move(common));
}

std::vector<ByteSequence> utf8_sequences(const CodeRanges& set) {
  constexpr CodeRange kLengths[] = {{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, kLastCode}};
  std::vector<ByteSequence> sequences;
  for (const CodeRange& range : set.ranges()) {
    for (const CodeRange& length : kLengths) {
      const char32_t first = std::max(range.first, length.first);
      const char32_t last = std::min(range.last, length.last);
      if (first <= last) split_encoded(first, last, sequences);
    }
  }
  return sequences;
}

}  // namespace qwench
