#include "core/utf8.h"

namespace qwench {

Utf8Char decode_utf8(std::string_view text) noexcept {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  int length = 0;
  char32_t code = 0;
  // The second byte's range is narrower after E0, ED, F0 and F4 (Unicode table 3-7).
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    code = first & 0x1FU;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    code = first & 0x0FU;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    code = first & 0x07U;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {kReplacementCharacter, 1, false};
  }
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) >= text.size()) return {kReplacementCharacter, i, false};
    const uint8_t next = byte(static_cast<size_t>(i));
    if (next < low || next > high) return {kReplacementCharacter, i, false};
    code = (code << 6) | (next & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {code, length, true};
}

void append_utf8(std::string& out, char32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) code = kReplacementCharacter;
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid) return false;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return true;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (c.valid) {
      out.append(text.substr(0, static_cast<size_t>(c.length)));
    } else {
      append_utf8(out, kReplacementCharacter);
    }
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return out;
}

int incomplete_utf8_suffix(std::string_view text) noexcept {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<uint8_t>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const Utf8Char c = decode_utf8(text.substr(text.size() - back));
    const size_t needed = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
    const bool unfinished =
        !c.valid && byte >= 0xC2 && byte <= 0xF4 && back < needed && static_cast<size_t>(c.length) == back;
    return unfinished ? static_cast<int>(back) : 0;
  }
  return 0;
}

std::u32string to_utf32(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    out.push_back(c.code);
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

}  // namespace qwench
