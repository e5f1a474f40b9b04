#include "text/pre_tokenizer_scan.h"

#include <array>
#include <cstdint>

#include "text/unicode_classes.h"

namespace qwench {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

enum Kind : uint8_t { letter, number, space, newline, other };  // newline is \r and \n alone

Kind kind_of(uint16_t properties) {
  if (unicode::is_letter(properties)) return letter;
  if (unicode::is_number(properties)) return number;
  return properties & unicode::kWhiteSpace ? space : other;
}

/// What the patterns tell apart, for each ASCII character.
const std::array<Kind, 128>& ascii_kinds() {
  static const auto kinds = [] {
    std::array<Kind, 128> out{};
    for (char32_t c = 0; c < 128; ++c) out[c] = kind_of(unicode::property_table()[c]);
    out['\n'] = out['\r'] = newline;
    return out;
  }();
  return kinds;
}

class Scanner {
 public:
  Scanner(const char* begin, const char* end) : p_(begin), end_(end) {}

  bool at_end() const { return p_ == end_; }
  const char* place() const { return p_; }

  void gpt2() {
    if (*p_ == '\'' && contraction(false)) return;
    const char* next = p_;
    Kind kind = take(next);
    if (*p_ == ' ' && next != end_) {
      const char* after = next;
      const Kind second = take(after);
      if (second == letter || second == number || second == other) {
        kind = second;
        next = after;
      }
    }
    if (kind == space || kind == newline) return white_space();
    p_ = run(next, kind);
  }

  void qwen2(int most_digits) {
    if (*p_ == '\'' && contraction(true)) return;
    const char* next = p_;
    const Kind kind = take(next);
    if (kind == letter) {
      p_ = run(next, letter);
      return;
    }
    if (kind == number) {
      for (int digits = 1; digits < most_digits && next != end_; ++digits) {
        const char* after = next;
        if (take(after) != number) break;
        next = after;
      }
      p_ = next;
      return;
    }
    // [^\r\n\p{L}\p{N}]?\p{L}+ and " ?[^\s\p{L}\p{N}]+[\r\n]*": one more character decides.
    Kind second = newline;
    const char* after = next;
    if (kind != newline && next != end_) second = take(after);
    if (second == letter) {
      p_ = run(after, letter);
    } else if (kind == other) {
      p_ = newlines(run(next, other));
    } else if (*p_ == ' ' && second == other) {
      p_ = newlines(run(after, other));
    } else {
      if (line_end()) return;
      white_space();
    }
  }

 private:
  Kind take(const char*& p) const {
    if (static_cast<uint8_t>(*p) < 0x80) return ascii_[static_cast<uint8_t>(*p++)];
    return kind_of(properties_[unicode::next_char(p)]);
  }

  const char* run(const char* p, Kind kind) const {
    while (p != end_) {
      const char* next = p;
      if (take(next) != kind) break;
      p = next;
    }
    return p;
  }

  const char* newlines(const char* p) const {
    while (p != end_ && (*p == '\n' || *p == '\r')) ++p;
    return p;
  }

  /// 's 't 're 've 'm 'll 'd; without regard to case, U+017F is an s.
  bool contraction(bool fold) {
    const auto at = [&](ptrdiff_t i) {
      if (i >= end_ - p_) return '\0';
      const char c = p_[i];
      return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    const char a = at(1);
    const char b = at(2);
    size_t length = 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
      length = 2;
    else if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
      length = 3;
    else if (fold && a == '\xC5' && b == '\xBF')
      length = 3;
    p_ += length;
    return length > 0;
  }

  /// \s*[\r\n]+: up to the last line end of the white space here, if there is one.
  bool line_end() {
    const char* last = nullptr;
    for (const char* p = p_; p != end_;) {
      const Kind kind = take(p);
      if (kind != space && kind != newline) break;
      if (kind == newline) last = p;
    }
    if (last) p_ = last;
    return last != nullptr;
  }

  /// \s+(?!\S)|\s+: white space, but for its last character where something follows.
  void white_space() {
    const char* p = p_;
    const char* last = p_;  // the last white-space character
    while (p != end_) {
      const char* next = p;
      const Kind kind = take(next);
      if (kind != space && kind != newline) break;
      last = p;
      p = next;
    }
    p_ = p != end_ && last != p_ ? last : p;
  }

  const char* p_;
  const char* end_;
  const std::array<Kind, 128>& ascii_ = ascii_kinds();
  const unicode::PropertyTable& properties_ = unicode::property_table();
};

}  // namespace

std::string_view pattern_text(KnownPattern pattern) {
  switch (pattern) {
    case KnownPattern::gpt2:
      return kGpt2;
    case KnownPattern::qwen2:
      return kQwen2;
    case KnownPattern::llama3:
      return kLlama3;
  }
  return {};
}

std::optional<KnownPattern> known_pattern(std::string_view regex) {
  for (const auto pattern : {KnownPattern::gpt2, KnownPattern::qwen2, KnownPattern::llama3}) {
    if (regex == pattern_text(pattern)) return pattern;
  }
  return std::nullopt;
}

void scan_pieces(KnownPattern pattern, std::string_view text, ByteSpan range, std::vector<ByteSpan>& pieces) {
  Scanner scanner(text.data() + range.begin, text.data() + range.end);
  size_t begin = range.begin;
  const auto all = [&](auto&& step) {
    while (!scanner.at_end()) {
      step();
      const auto end = static_cast<size_t>(scanner.place() - text.data());
      pieces.push_back({begin, end});
      begin = end;
    }
  };
  switch (pattern) {
    case KnownPattern::gpt2:
      return all([&] { scanner.gpt2(); });
    case KnownPattern::qwen2:
      return all([&] { scanner.qwen2(1); });
    case KnownPattern::llama3:
      return all([&] { scanner.qwen2(3); });
  }
}

}  // namespace qwench
