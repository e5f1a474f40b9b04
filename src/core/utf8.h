#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qwench {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// One step of UTF-8 decoding.
struct Utf8Char {
  char32_t code;  ///< the code point, or U+FFFD for an ill-formed part
  int length;  ///< bytes used, at least 1: for an ill-formed part, those of its maximal subpart (Unicode 3.9,
               ///< D93b)
  bool valid;
};

/// The character at the start of `text`, which must not be empty.
Utf8Char decode_utf8(std::string_view text) noexcept;

/// Appends `code` as UTF-8; surrogates and values above U+10FFFF become U+FFFD.
void append_utf8(std::string& out, char32_t code);

bool is_valid_utf8(std::string_view text) noexcept;

/// `text` with each maximal ill-formed part replaced by one U+FFFD, as Python's errors="replace" does.
std::string to_valid_utf8(std::string_view text);

/// How many bytes at the end of `text` are the unfinished beginning of a character that further bytes could
/// complete (0 to 3). What precedes them can be decoded for good.
int incomplete_utf8_suffix(std::string_view text) noexcept;

std::u32string to_utf32(std::string_view text);  ///< ill-formed parts become U+FFFD
std::string to_utf8(std::u32string_view text);

}  // namespace qwench
