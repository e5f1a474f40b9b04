#include "text/unicode_regex_class.h"

#include <fmt/format.h>

#include "checkpoint/printable.h"
#include "core/utf8.h"
#include "qwench/error.h"

namespace qwench::unicode {
namespace {

constexpr int kMaxClassDepth = 32;

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

/// Up to `most` digits of `base`.
char32_t read_number(PatternReader& reader, int base, int most, int least) {
  char32_t value = 0;
  int digits = 0;
  for (; digits < most && digit_value(reader.peek()) < base; ++digits) {
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(reader.peek()));
    if (value > kLastCodePoint) reader.fail("a code point above 10FFFF");
    reader.take();
  }
  if (digits < least) reader.fail("an escape with too few digits");
  return value;
}

CodePointSet read_property(PatternReader& reader, bool inverted) {
  if (!reader.accept("{")) reader.fail("\\p without {name}");
  if (reader.accept("^")) inverted = !inverted;
  std::string name;
  while (!reader.at_end() && reader.peek() != '}') append_utf8(name, reader.take());
  if (!reader.accept("}")) reader.fail("\\p{ without its }");
  const std::optional<CodePointSet> set = property_set(name);
  if (!set) {
    reader.fail_unsupported(fmt::format(
        "the character property {} in \\p{{...}} (supported: general categories such as L, Lu, N, "
        "scripts such as Han, "
        "Alphabetic, Lowercase, Uppercase, White_Space, Word, Punct, Emoji, Any)",
        printable(name)));
  }
  return inverted ? set->inverted() : *set;
}

/// \w in a class lacks a few numbers of Latin-1 that \w alone has, as in Oniguruma.
CodePointSet class_word() {
  return named_set("pattern_word") &
         CodePointSet::of_ranges({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}).inverted();
}

/// [:name:] when one comes next; the reader is behind the first bracket.
std::optional<CodePointSet> read_posix_class(PatternReader& reader) {
  if (reader.peek() != ':') return std::nullopt;
  const size_t close = reader.rest().find(":]");
  if (close == std::string_view::npos || close < 2) return std::nullopt;
  std::string_view name = reader.rest().substr(1, close - 1);
  const bool inverted = name.front() == '^';
  if (inverted) name.remove_prefix(1);
  std::optional<CodePointSet> set;
  if (name == "digit") set = named_set("pattern_digit");
  if (name == "punct") set = named_set("pattern_punct");  // symbols too, unlike \p{Punct}
  if (name == "word") set = class_word();
  for (const std::string_view known :
       {"alnum", "alpha", "ascii", "blank", "cntrl", "graph", "lower", "print", "space", "upper", "xdigit"}) {
    if (name == known) set = property_set(name);
  }
  if (!set) reader.fail(fmt::format("an unknown POSIX class {}", printable(name)));
  reader.go_to(reader.place() + close + 2);
  return inverted ? set->inverted() : *set;
}

}  // namespace

bool PatternReader::accept(std::string_view text) {
  if (pattern_.substr(place_).substr(0, text.size()) != text) return false;
  place_ += text.size();
  return true;
}

char32_t PatternReader::take() {
  const Utf8Char c = decode_utf8(pattern_.substr(place_));
  place_ += static_cast<size_t>(c.length);
  return c.code;
}

void PatternReader::fail(std::string_view problem) const {
  throw Error(ErrorKind::malformed, fmt::format("{}: the pattern {} has {} near byte {}", what_,
                                                printable(pattern_), problem, place_));
}

void PatternReader::fail_unsupported(std::string_view what) const {
  throw Error(ErrorKind::unsupported, fmt::format("{}: the pattern {} needs {}, which is not supported",
                                                  what_, printable(pattern_), what));
}

Escape read_escape(PatternReader& reader) {
  if (reader.at_end()) reader.fail("a backslash at its end");
  const char32_t c = reader.take();
  const auto set = [](const CodePointSet& s, bool inverted) {
    return Escape{inverted ? s.inverted() : s, 0};
  };
  switch (c) {
    case 't':
      return {{}, '\t'};
    case 'n':
      return {{}, '\n'};
    case 'r':
      return {{}, '\r'};
    case 'f':
      return {{}, '\f'};
    case 'v':
      return {{}, '\v'};
    case 'a':
      return {{}, '\a'};
    case 'e':
      return {{}, 0x1B};
    case 'd':
    case 'D':
      return set(named_set("pattern_digit"), c == 'D');
    case 's':
    case 'S':
      return set(named_set("white_space"), c == 'S');
    case 'w':
    case 'W':
      return set(named_set("pattern_word"), c == 'W');
    case 'h':
    case 'H':
      return set(*property_set("xdigit"), c == 'H');
    case 'p':
    case 'P': {
      if (reader.peek() != '{') return {{}, c};
      return {read_property(reader, c == 'P'), 0};
    }
    case 'x': {
      if (reader.accept("{")) {
        const char32_t code = read_number(reader, 16, 8, 1);
        if (!reader.accept("}")) reader.fail("\\x{ without its }");
        return {{}, code};
      }
      const char32_t code = read_number(reader, 16, 2, 1);
      if (code >= 0x80) reader.fail_unsupported("a single byte above 7F");
      return {{}, code};
    }
    case 'u':
      return {{}, read_number(reader, 16, 4, 4)};
    case '0':
      return {{}, read_number(reader, 8, 2, 0)};
    case 'c':
    case 'C':
    case 'M':
      reader.fail_unsupported("a control or meta escape");
    default:
      return {{}, c};
  }
}

CodePointSet read_class(PatternReader& reader, bool ignore_case, int depth) {
  if (depth > kMaxClassDepth)
    reader.fail_unsupported(fmt::format("classes nested more than {} deep", kMaxClassDepth));
  const bool inverted = reader.accept("^");
  CodePointSet members;                 // of the part since the last &&
  std::optional<CodePointSet> meeting;  // of the parts before it
  std::vector<Range> singles;           // gathered first: a union a character would be quadratic
  const auto whole_part = [&] {
    CodePointSet part = members | CodePointSet::of_ranges(singles);
    return ignore_case ? part.case_closed() : part;
  };
  bool first = true;
  for (;; first = false) {
    if (reader.at_end()) reader.fail("a class without its ]");
    if (reader.peek() == ']' && !first) {
      reader.take();
      break;
    }
    if (reader.accept("&&")) {
      meeting = meeting ? *meeting & whole_part() : whole_part();
      members = {};
      singles.clear();
      continue;
    }
    char32_t low = 0;
    if (reader.accept("[")) {
      if (auto posix = read_posix_class(reader)) {
        members = members | *posix;
      } else {
        members = members | read_class(reader, ignore_case, depth + 1);
      }
      continue;
    }
    if (reader.accept("\\")) {
      if (reader.peek() == 'b') {
        reader.take();
        low = '\b';
      } else {
        const char letter = reader.peek();
        const Escape escape = read_escape(reader);
        if (escape.set) {
          if (letter == 'w')
            members = members | class_word();
          else if (letter == 'W')
            members = members | class_word().inverted();
          else
            members = members | *escape.set;
          continue;
        }
        low = escape.code;
      }
    } else {
      low = reader.take();
    }
    char32_t high = low;
    // A '-' before the closing bracket, or before a nested class, is itself a member.
    if (reader.peek() == '-' && reader.peek(1) != ']' && reader.peek(1) != '\0' && reader.peek(1) != '[' &&
        !(reader.peek(1) == '&' && reader.peek(2) == '&')) {
      reader.take();
      if (reader.accept("\\")) {
        const Escape escape = read_escape(reader);
        if (escape.set) reader.fail("a range that ends in a set");
        high = escape.code;
      } else {
        high = reader.take();
      }
      if (high < low) reader.fail("an empty range");
    }
    singles.push_back({low, high});
  }
  CodePointSet result = meeting ? *meeting & whole_part() : whole_part();
  return inverted ? result.inverted() : result;
}

}  // namespace qwench::unicode
