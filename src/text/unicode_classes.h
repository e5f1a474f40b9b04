#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode_tables.h"

namespace qwench::unicode {

/// General categories, in the order of the generated table.
enum Category : uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co,
  Cn,
};

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// Bits of properties(): the low five are the category.
inline constexpr uint16_t kCategoryMask = 0x1F;
inline constexpr uint16_t kWhiteSpace = 1 << 5;
inline constexpr uint16_t kWord = 1 << 6;
inline constexpr uint16_t kNumeric = 1 << 7;
inline constexpr uint16_t kPunctuation = 1 << 8;
inline constexpr uint16_t kNonspacingMark = 1 << 9;
inline constexpr uint16_t kCombining = 1 << 10;  // canonical combining class not 0
inline constexpr uint16_t kNotInertNfc = 1 << 11;
inline constexpr uint16_t kNotInertNfd = 1 << 12;
inline constexpr uint16_t kNotInertNfkc = 1 << 13;
inline constexpr uint16_t kNotInertNfkd = 1 << 14;

/// Two-stage table of all code points' properties.
class PropertyTable {
 public:
  PropertyTable();
  uint16_t operator[](char32_t c) const { return blocks_[size_t{index_[c >> 8]} << 8 | (c & 0xFF)]; }

 private:
  std::array<uint16_t, (kLastCodePoint >> 8) + 1> index_{};
  std::vector<uint16_t> blocks_;
};

const PropertyTable& property_table();  ///< made at the first call; thread-safe

inline Category category(uint16_t properties) { return static_cast<Category>(properties & kCategoryMask); }
inline bool is_letter(uint16_t properties) { return (properties & kCategoryMask) <= Lo; }
inline bool is_number(uint16_t properties) {
  return (properties & kCategoryMask) >= Nd && (properties & kCategoryMask) <= No;
}

/// The character at `p` of well-formed UTF-8; `p` moves behind it.
inline char32_t next_char(const char*& p) {
  const auto byte = [&] { return static_cast<uint8_t>(*p++); };
  const char32_t first = byte();
  if (first < 0x80) return first;
  if (first < 0xE0) return (first & 0x1F) << 6 | (byte() & 0x3FU);
  char32_t c = byte() & 0x3FU;
  if (first < 0xF0) {
    c = (first & 0x0F) << 12 | c << 6;
    return c | (byte() & 0x3FU);
  }
  c = (first & 0x07) << 18 | c << 12;
  c |= (byte() & 0x3FU) << 6;
  return c | (byte() & 0x3FU);
}

/// The bytes of the character that begins with `first`, in well-formed UTF-8.
inline size_t utf8_length(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Bytes at the start of `text` that are ASCII.
size_t ascii_prefix(std::string_view text);

/// Full lower case of one character, appended as UTF-8 (as Rust's char::to_lowercase).
void append_lowercase(std::string& out, char32_t c);

/// A set of code points: sorted ranges that neither touch nor overlap.
class CodePointSet {
 public:
  CodePointSet() = default;
  CodePointSet(char32_t first, char32_t last) : ranges_{{first, last}} {}
  static CodePointSet of_ranges(std::vector<Range> ranges);  ///< in any order, overlaps allowed
  static CodePointSet of_categories(uint32_t mask);

  bool contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

  CodePointSet operator|(const CodePointSet& other) const;
  CodePointSet operator&(const CodePointSet& other) const;
  CodePointSet operator^(const CodePointSet& other) const;
  CodePointSet inverted() const;
  CodePointSet case_closed() const;  ///< with all characters that differ from a member only in case
  bool operator==(const CodePointSet& other) const;

 private:
  std::vector<Range> ranges_;
};

/// A set of the generated table; the name must be one of it.
const CodePointSet& named_set(std::string_view name);

/// A property as patterns name it, without regard to case, spaces, "_" and "-": a general category ("L",
/// "Lu", "letter", ...), a script ("Han") or one of a few others ("Alphabetic", "White_Space", "Emoji").
std::optional<CodePointSet> property_set(std::string_view name);

}  // namespace qwench::unicode
