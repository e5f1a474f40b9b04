#include "text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "core/utf8.h"

namespace qwench::jinja {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

struct SpecialCasing {
  char32_t code;
  std::u32string_view upper;
  std::u32string_view title;
};

// The characters whose upper or title case is more than one character (SpecialCasing.txt, without
// conditions).
constexpr SpecialCasing kSpecialCasing[] = {
    {0x00DF, U"\x53\x53", U"\x53\x73"},
    {0x0149, U"\x02BC\x4E", U"\x02BC\x4E"},
    {0x01F0, U"\x4A\x030C", U"\x4A\x030C"},
    {0x0390, U"\x0399\x0308\x0301", U"\x0399\x0308\x0301"},
    {0x03B0, U"\x03A5\x0308\x0301", U"\x03A5\x0308\x0301"},
    {0x0587, U"\x0535\x0552", U"\x0535\x0582"},
    {0x1E96, U"\x48\x0331", U"\x48\x0331"},
    {0x1E97, U"\x54\x0308", U"\x54\x0308"},
    {0x1E98, U"\x57\x030A", U"\x57\x030A"},
    {0x1E99, U"\x59\x030A", U"\x59\x030A"},
    {0x1E9A, U"\x41\x02BE", U"\x41\x02BE"},
    {0x1F50, U"\x03A5\x0313", U"\x03A5\x0313"},
    {0x1F52, U"\x03A5\x0313\x0300", U"\x03A5\x0313\x0300"},
    {0x1F54, U"\x03A5\x0313\x0301", U"\x03A5\x0313\x0301"},
    {0x1F56, U"\x03A5\x0313\x0342", U"\x03A5\x0313\x0342"},
    {0x1F80, U"\x1F08\x0399", U"\x1F88"},
    {0x1F81, U"\x1F09\x0399", U"\x1F89"},
    {0x1F82, U"\x1F0A\x0399", U"\x1F8A"},
    {0x1F83, U"\x1F0B\x0399", U"\x1F8B"},
    {0x1F84, U"\x1F0C\x0399", U"\x1F8C"},
    {0x1F85, U"\x1F0D\x0399", U"\x1F8D"},
    {0x1F86, U"\x1F0E\x0399", U"\x1F8E"},
    {0x1F87, U"\x1F0F\x0399", U"\x1F8F"},
    {0x1F88, U"\x1F08\x0399", U"\x1F88"},
    {0x1F89, U"\x1F09\x0399", U"\x1F89"},
    {0x1F8A, U"\x1F0A\x0399", U"\x1F8A"},
    {0x1F8B, U"\x1F0B\x0399", U"\x1F8B"},
    {0x1F8C, U"\x1F0C\x0399", U"\x1F8C"},
    {0x1F8D, U"\x1F0D\x0399", U"\x1F8D"},
    {0x1F8E, U"\x1F0E\x0399", U"\x1F8E"},
    {0x1F8F, U"\x1F0F\x0399", U"\x1F8F"},
    {0x1F90, U"\x1F28\x0399", U"\x1F98"},
    {0x1F91, U"\x1F29\x0399", U"\x1F99"},
    {0x1F92, U"\x1F2A\x0399", U"\x1F9A"},
    {0x1F93, U"\x1F2B\x0399", U"\x1F9B"},
    {0x1F94, U"\x1F2C\x0399", U"\x1F9C"},
    {0x1F95, U"\x1F2D\x0399", U"\x1F9D"},
    {0x1F96, U"\x1F2E\x0399", U"\x1F9E"},
    {0x1F97, U"\x1F2F\x0399", U"\x1F9F"},
    {0x1F98, U"\x1F28\x0399", U"\x1F98"},
    {0x1F99, U"\x1F29\x0399", U"\x1F99"},
    {0x1F9A, U"\x1F2A\x0399", U"\x1F9A"},
    {0x1F9B, U"\x1F2B\x0399", U"\x1F9B"},
    {0x1F9C, U"\x1F2C\x0399", U"\x1F9C"},
    {0x1F9D, U"\x1F2D\x0399", U"\x1F9D"},
    {0x1F9E, U"\x1F2E\x0399", U"\x1F9E"},
    {0x1F9F, U"\x1F2F\x0399", U"\x1F9F"},
    {0x1FA0, U"\x1F68\x0399", U"\x1FA8"},
    {0x1FA1, U"\x1F69\x0399", U"\x1FA9"},
    {0x1FA2, U"\x1F6A\x0399", U"\x1FAA"},
    {0x1FA3, U"\x1F6B\x0399", U"\x1FAB"},
    {0x1FA4, U"\x1F6C\x0399", U"\x1FAC"},
    {0x1FA5, U"\x1F6D\x0399", U"\x1FAD"},
    {0x1FA6, U"\x1F6E\x0399", U"\x1FAE"},
    {0x1FA7, U"\x1F6F\x0399", U"\x1FAF"},
    {0x1FA8, U"\x1F68\x0399", U"\x1FA8"},
    {0x1FA9, U"\x1F69\x0399", U"\x1FA9"},
    {0x1FAA, U"\x1F6A\x0399", U"\x1FAA"},
    {0x1FAB, U"\x1F6B\x0399", U"\x1FAB"},
    {0x1FAC, U"\x1F6C\x0399", U"\x1FAC"},
    {0x1FAD, U"\x1F6D\x0399", U"\x1FAD"},
    {0x1FAE, U"\x1F6E\x0399", U"\x1FAE"},
    {0x1FAF, U"\x1F6F\x0399", U"\x1FAF"},
    {0x1FB2, U"\x1FBA\x0399", U"\x1FBA\x0345"},
    {0x1FB3, U"\x0391\x0399", U"\x1FBC"},
    {0x1FB4, U"\x0386\x0399", U"\x0386\x0345"},
    {0x1FB6, U"\x0391\x0342", U"\x0391\x0342"},
    {0x1FB7, U"\x0391\x0342\x0399", U"\x0391\x0342\x0345"},
    {0x1FBC, U"\x0391\x0399", U"\x1FBC"},
    {0x1FC2, U"\x1FCA\x0399", U"\x1FCA\x0345"},
    {0x1FC3, U"\x0397\x0399", U"\x1FCC"},
    {0x1FC4, U"\x0389\x0399", U"\x0389\x0345"},
    {0x1FC6, U"\x0397\x0342", U"\x0397\x0342"},
    {0x1FC7, U"\x0397\x0342\x0399", U"\x0397\x0342\x0345"},
    {0x1FCC, U"\x0397\x0399", U"\x1FCC"},
    {0x1FD2, U"\x0399\x0308\x0300", U"\x0399\x0308\x0300"},
    {0x1FD3, U"\x0399\x0308\x0301", U"\x0399\x0308\x0301"},
    {0x1FD6, U"\x0399\x0342", U"\x0399\x0342"},
    {0x1FD7, U"\x0399\x0308\x0342", U"\x0399\x0308\x0342"},
    {0x1FE2, U"\x03A5\x0308\x0300", U"\x03A5\x0308\x0300"},
    {0x1FE3, U"\x03A5\x0308\x0301", U"\x03A5\x0308\x0301"},
    {0x1FE4, U"\x03A1\x0313", U"\x03A1\x0313"},
    {0x1FE6, U"\x03A5\x0342", U"\x03A5\x0342"},
    {0x1FE7, U"\x03A5\x0308\x0342", U"\x03A5\x0308\x0342"},
    {0x1FF2, U"\x1FFA\x0399", U"\x1FFA\x0345"},
    {0x1FF3, U"\x03A9\x0399", U"\x1FFC"},
    {0x1FF4, U"\x038F\x0399", U"\x038F\x0345"},
    {0x1FF6, U"\x03A9\x0342", U"\x03A9\x0342"},
    {0x1FF7, U"\x03A9\x0342\x0399", U"\x03A9\x0342\x0345"},
    {0x1FFC, U"\x03A9\x0399", U"\x1FFC"},
    {0xFB00, U"\x46\x46", U"\x46\x66"},
    {0xFB01, U"\x46\x49", U"\x46\x69"},
    {0xFB02, U"\x46\x4C", U"\x46\x6C"},
    {0xFB03, U"\x46\x46\x49", U"\x46\x66\x69"},
    {0xFB04, U"\x46\x46\x4C", U"\x46\x66\x6C"},
    {0xFB05, U"\x53\x54", U"\x53\x74"},
    {0xFB06, U"\x53\x54", U"\x53\x74"},
    {0xFB13, U"\x0544\x0546", U"\x0544\x0576"},
    {0xFB14, U"\x0544\x0535", U"\x0544\x0565"},
    {0xFB15, U"\x0544\x053B", U"\x0544\x056B"},
    {0xFB16, U"\x054E\x0546", U"\x054E\x0576"},
    {0xFB17, U"\x0544\x053D", U"\x0544\x056D"},
};

const SpecialCasing* special_casing(char32_t c) {
  const auto* found =
      std::lower_bound(std::begin(kSpecialCasing), std::end(kSpecialCasing), c,
                       [](const SpecialCasing& entry, char32_t code) { return entry.code < code; });
  return found != std::end(kSpecialCasing) && found->code == c ? found : nullptr;
}

void append_all(std::string& out, std::u32string_view text) {
  for (char32_t c : text) append_utf8(out, c);
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  if (is_decimal(c)) return true;
  return c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0x1369 && c <= 0x1371) || c == 0x19DA || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
         (c >= 0x2474 && c <= 0x247C) || (c >= 0x2488 && c <= 0x2490) || c == 0x24EA ||
         (c >= 0x24F5 && c <= 0x24FD) || c == 0x24FF || (c >= 0x2776 && c <= 0x277E) ||
         (c >= 0x2780 && c <= 0x2788) || (c >= 0x278A && c <= 0x2792) || (c >= 0x10A40 && c <= 0x10A43) ||
         (c >= 0x10E60 && c <= 0x10E68) || (c >= 0x11052 && c <= 0x1105A) || (c >= 0x1F100 && c <= 0x1F10A);
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  if (kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO)
    return true;
  // The ideographs with a numeric value that occur in numbers (Unihan kPrimaryNumeric and
  // kAccountingNumeric).
  constexpr std::u32string_view numerals =
      U"一二三四五六七八九十百千万亿億兆〇零壹贰貳叁參肆伍陆陸柒捌玖拾佰仟萬两兩";
  return numerals.find(c) != std::u32string_view::npos;
}

bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::u32string_view others =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  return others.find(c) != std::u32string_view::npos;
}

bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_identifier_start(char32_t c) {
  if (c < 0x80) return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c)) return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0xB7;
  }
}

int decimal_value(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c < 0x80 || !is_decimal(c)) return -1;
  // Decimal digits come in runs of ten that begin with the zero.
  int below = 0;
  while (below < 60 && is_decimal(c - static_cast<char32_t>(below) - 1)) ++below;
  return below % 10;
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  } else if (const SpecialCasing* special = special_casing(c)) {
    append_all(out, special->upper);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    out += "i\xCC\x87";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const SpecialCasing* special = c < 0x80 ? nullptr : special_casing(c)) {
    append_all(out, special->title);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_folded(std::string& out, char32_t c) {
  utf8proc_int32_t folded[8];
  int boundary = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &boundary);
  if (count <= 0) return append_utf8(out, c);
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<size_t> code_point_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) offsets.push_back(i);
  }
  offsets.push_back(text.size());
  return offsets;
}

size_t byte_of_code_point(std::string_view text, size_t index) {
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && index-- == 0) return i;
  }
  return text.size();
}

}  // namespace qwench::jinja
