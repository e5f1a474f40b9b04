#pragma once

#include <cstdint>
#include <vector>

namespace qwench {

struct CodeRange {
  char32_t first;
  char32_t last;

  friend bool operator==(const CodeRange&, const CodeRange&) = default;
};

/// A set of Unicode scalar values (all code points but surrogates): ascending ranges that do not touch.
class CodeRanges {
 public:
  CodeRanges() = default;
  /// Any order; surrogates and what lies above U+10FFFF are dropped.
  explicit CodeRanges(std::vector<CodeRange> ranges);

  static CodeRanges all();
  static CodeRanges one(char32_t code) { return CodeRanges({{code, code}}); }

  const std::vector<CodeRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t code) const;

  CodeRanges united(const CodeRanges& other) const;
  CodeRanges complement() const;
  CodeRanges intersected(const CodeRanges& other) const;
  CodeRanges without(const CodeRanges& other) const { return intersected(other.complement()); }

  friend bool operator==(const CodeRanges&, const CodeRanges&) = default;

 private:
  std::vector<CodeRange> ranges_;
};

struct ByteRange {
  uint8_t low;
  uint8_t high;
};
/// Byte strings whose bytes lie, each, in its range.
using ByteSequence = std::vector<ByteRange>;

/// The UTF-8 of a set of code points, as few sequences of byte ranges as cover it without overlap.
std::vector<ByteSequence> utf8_sequences(const CodeRanges& set);

}  // namespace qwench
