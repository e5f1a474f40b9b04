#include "text/bpe_byte_alphabet.h"

#include <array>
#include <cstdint>

#include "core/utf8.h"

namespace qwench {
namespace {

struct ByteAlphabet {
  std::array<std::string, 256> text;  // by byte, UTF-8
  std::array<int, 0x144> byte_of{};   // by code point, -1 = none

  ByteAlphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool visible = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = visible ? static_cast<char32_t>(b) : next++;
      append_utf8(text[static_cast<size_t>(b)], c);
      byte_of[c] = b;
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet a;
  return a;
}

}  // namespace

void append_byte_alphabet(std::string& out, std::string_view bytes) {
  for (const char b : bytes) out += alphabet().text[static_cast<uint8_t>(b)];
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  append_byte_alphabet(out, bytes);
  return out;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid || c.code >= alphabet().byte_of.size() || alphabet().byte_of[c.code] < 0)
      return std::nullopt;
    out.push_back(static_cast<char>(alphabet().byte_of[c.code]));
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return out;
}

}  // namespace qwench
