#!/usr/bin/env python3
"""Write src/text/jinja/character_names.cpp: the Unicode names that \\N{...} in templates can use.

  generate_character_names.py > src/text/jinja/character_names.cpp
"""
import unicodedata

BLOCKS = [(0x20, 0x7E), (0xA0, 0x17F), (0x391, 0x3C9), (0x2000, 0x206F), (0x20A0, 0x20BF), (0x2100, 0x214F), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2500, 0x259F),
          (0x25A0, 0x25FF), (0x2600, 0x26FF), (0x2700, 0x27BF), (0x3000, 0x301F), (0xFEFF, 0xFEFF), (0xFFFC, 0xFFFD), (0x1F600, 0x1F64F)]

print('''// Made by tools/generate_character_names.py from the Unicode character database.
#include <cstdint>
#include <string_view>

#include "text/jinja/string_literal.h"

namespace qwench::jinja {
namespace {

// The names of consecutive characters from `first` on, each followed by a bar; empty where there is none.
struct NameBlock {
  char32_t first;
  std::string_view names;
};

constexpr NameBlock kBlocks[] = {''')
for first, last in BLOCKS:
    names = "".join(unicodedata.name(chr(c), "") + "|" for c in range(first, last + 1))
    print("    {0x%04X," % first)
    for at in range(0, len(names), 100):
        print('     "%s"%s' % (names[at:at + 100], "" if at + 100 < len(names) else "},"))
print('''};

}  // namespace

std::optional<char32_t> character_by_name(std::string_view name) {
  std::string upper(name);  // names are matched without regard to case
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  if (upper.find('|') != std::string::npos) return std::nullopt;
  for (const NameBlock& block : kBlocks) {
    char32_t code = block.first;
    for (size_t at = 0; at < block.names.size(); ++code) {
      const size_t end = block.names.find('|', at);
      if (block.names.substr(at, end - at) == upper) return code;
      at = end + 1;
    }
  }
  return std::nullopt;
}

}  // namespace qwench::jinja''')
