#include "grammar/regex_parser.h"

#include <fmt/format.h>

#include <optional>

#include "core/ascii.h"
#include "core/utf8.h"
#include "grammar/regex_classes.h"
#include "text/unicode_classes.h"

namespace qwench {
namespace {

constexpr int kDeepestRegexGroup = 200;
constexpr int kMostCountedRegex = 1000000;

class RegexParser {
 public:
  RegexParser(GrammarBuilder& builder, std::string_view pattern, const EncodeChars& encode,
              const std::string& where)
      : builder_(builder), text_(pattern), encode_(encode), where_(where) {}

  std::vector<RegexBranch> parse() {
    if (!is_valid_utf8(text_)) fail("it is not valid UTF-8");
    std::vector<RegexBranch> branches = parse_branches();
    if (at_ < text_.size()) fail("there is a ) without its (");
    return branches;
  }

 private:
  using Expr = GrammarBuilder::Expr;

  struct Atom {
    Expr expr = 0;
    std::vector<RegexBranch> group{};  // where it is one
    bool quantified = false;
  };
  struct Count {
    int least;
    int most;
  };

  [[noreturn]] void fail(const std::string& sentence) const {
    builder_.fail(fmt::format("{}the pattern \"{}\": {} (at byte {})", where_, shortened(), sentence, at_));
  }
  std::string shortened() const {
    constexpr size_t kLongest = 80;
    return to_valid_utf8(text_.size() <= kLongest ? std::string(text_)
                                                  : std::string(text_.substr(0, kLongest)) + "...");
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::vector<RegexBranch> parse_branches() {
    if (++depth_ > kDeepestRegexGroup) fail("its groups are nested too deeply");
    std::vector<RegexBranch> branches;
    do {
      parse_branch(branches);
    } while (take("|"));
    --depth_;
    return branches;
  }

  void parse_branch(std::vector<RegexBranch>& branches) {
    bool from_start = false;
    bool to_end = false;
    while (take("^")) from_start = true;
    std::vector<Atom> atoms;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (take("$")) {
        to_end = true;
        continue;
      }
      if (to_end) fail("$ is supported only at the end of the pattern or of an alternative");
      if (peek() == '^') fail("^ is supported only at the beginning of the pattern or of an alternative");
      atoms.push_back(parse_quantified());
    }
    if (atoms.size() == 1 && !atoms[0].quantified && !atoms[0].group.empty()) {
      for (const RegexBranch& inner : atoms[0].group)
        branches.push_back({inner.expr, inner.from_start || from_start, inner.to_end || to_end});
      return;
    }
    std::vector<Expr> parts;
    for (const Atom& atom : atoms) parts.push_back(value_of(atom));
    branches.push_back({builder_.sequence(std::move(parts)), from_start, to_end});
  }

  Expr value_of(const Atom& atom) {
    if (atom.group.empty()) return atom.expr;
    std::vector<Expr> alternatives;
    for (const RegexBranch& branch : atom.group) {
      if (branch.from_start || branch.to_end)
        fail("^ and $ are supported only at the ends of the pattern or of its alternatives");
      alternatives.push_back(branch.expr);
    }
    return builder_.either(std::move(alternatives));
  }

  Atom parse_quantified() {
    Atom atom = parse_atom();
    while (const std::optional<Count> count = parse_count()) {
      if (atom.quantified) fail("a repetition follows a repetition");
      atom.expr = builder_.repeat(value_of(atom), count->least, count->most);
      atom.group.clear();
      atom.quantified = true;
      if (take("+")) fail("possessive repetitions are not supported");
      take("?");  // lazy: the same texts
    }
    return atom;
  }

  std::optional<Count> parse_count() {
    if (take("*")) return Count{0, GrammarBuilder::kUnbounded};
    if (take("+")) return Count{1, GrammarBuilder::kUnbounded};
    if (take("?")) return Count{0, 1};
    if (peek() != '{') return std::nullopt;
    const size_t begin = at_++;
    const std::optional<int> least = parse_number();
    const bool comma = take(",");
    const std::optional<int> most = comma ? parse_number() : least;
    if (!take("}") || (!least && !most)) {
      at_ = begin;  // a brace like any other character
      return std::nullopt;
    }
    if (!least) fail("dialects differ on {,n}; write {0,n}");
    if (most && *most < *least)
      fail(fmt::format("the repetition {{{},{}}} ends below where it begins", *least, *most));
    return Count{*least, most.value_or(GrammarBuilder::kUnbounded)};
  }

  std::optional<int> parse_number() {
    std::optional<int> number;
    while (peek() >= '0' && peek() <= '9') {
      number = number.value_or(0) * 10 + (text_[at_++] - '0');
      if (*number > kMostCountedRegex)
        fail(fmt::format("a count of repetitions is above {}", kMostCountedRegex));
    }
    return number;
  }

  char32_t take_char() {
    const Utf8Char c = decode_utf8(text_.substr(at_));
    at_ += static_cast<size_t>(c.length);
    return c.code;
  }

  Atom parse_atom() {
    switch (peek()) {
      case '(':
        ++at_;
        return parse_group();
      case '[':
        ++at_;
        return {encode_(parse_class())};
      case '.':
        ++at_;
        return {encode_(regex_dot())};
      case '*':
      case '+':
      case '?':
        fail("a repetition has nothing to repeat");
      case '\\': {
        ++at_;
        const RegexClass escaped = parse_escape(false);
        return {encode_(escaped.surely)};
      }
      default:
        return {encode_(CodeRanges::one(take_char()))};
    }
  }

  Atom parse_group() {
    if (take("?")) {
      if (take("=") || take("!") || take("<=") || take("<!")) fail("lookaround is not supported");
      if (take("P=")) fail("back references are not supported");
      if (take("P<") || take("<")) {
        while (!at_end() && peek() != '>') ++at_;
        if (!take(">")) fail("a group's name does not end");
      } else if (!take(":")) {
        fail("groups with (? other than (?: and (?<name> are not supported, flags neither");
      }
    }
    Atom atom;
    atom.group = parse_branches();
    if (!take(")")) fail("a group is not closed: a ) is missing");
    return atom;
  }

  CodeRanges parse_class() {
    const bool negated = take("^");
    RegexClass set;
    bool first = true;
    while (true) {
      if (at_end()) fail("a class is not closed: a ] is missing");
      if (peek() == ']') {
        if (first) fail("dialects differ on an empty class and on a ] that comes first; write \\]");
        ++at_;
        break;
      }
      first = false;
      if (text_.substr(at_).starts_with("[:")) fail("POSIX classes such as [:alpha:] are not supported");
      const bool escaped = take("\\");
      RegexClass item = escaped ? parse_escape(true) : one(take_char());
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        if (!single_) fail("a class cannot be an end of a range");
        const char32_t low = *single_;
        ++at_;
        const RegexClass end = take("\\") ? parse_escape(true) : one(take_char());
        if (!single_) fail("a class cannot be an end of a range");
        if (*single_ < low) fail("a range ends below where it begins");
        const CodeRanges range({{low, *single_}});
        item = {range, range};
      }
      set = {set.surely.united(item.surely), set.maybe.united(item.maybe)};
    }
    return negated ? set.complement().surely : set.surely;
  }

  RegexClass one(char32_t code) {
    single_ = code;
    const CodeRanges set = CodeRanges::one(code);
    return {set, set};
  }

  /// What follows a backslash.
  RegexClass parse_escape(bool in_class) {
    single_.reset();
    if (at_end()) fail("it ends with a backslash");
    const char c = text_[at_++];
    switch (c) {
      case 'd':
      case 'w':
      case 's':
        return regex_class(c);
      case 'D':
        return regex_class('d').complement();
      case 'W':
        return regex_class('w').complement();
      case 'S':
        return regex_class('s').complement();
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'x':
        return one(parse_hex(2));
      case 'u':
        return one(parse_unicode());
      case 'U':
        return one(parse_hex(8));
      case '0':
        if (hex_digit(peek()) >= 0 && hex_digit(peek()) < 8) fail("octal escapes are not supported");
        return one(0);
      case 'b':
        if (in_class) return one('\b');
        [[fallthrough]];
      case 'B':
      case 'A':
      case 'Z':
      case 'z':
        fail(fmt::format("\\{} is not supported", c));
      case 'p':
      case 'P':
        return parse_property(c == 'P');
      default:
        if (c >= '1' && c <= '9') fail("back references are not supported");
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
          fail(fmt::format("the escape \\{} is not known", c));
        --at_;
        return one(take_char());
    }
  }

  RegexClass parse_property(bool negated) {
    const size_t end = text_.find('}', at_);
    if (peek() != '{' || end == std::string_view::npos) fail("expected \\p{Name}");
    const auto set = unicode::property_set(text_.substr(at_ + 1, end - at_ - 1));
    if (!set) fail("the Unicode property is not known");
    at_ = end + 1;
    std::vector<CodeRange> ranges;
    for (const auto& range : set->ranges()) ranges.push_back({range.first, range.last});
    const CodeRanges codes(std::move(ranges));
    return negated ? RegexClass{codes, codes}.complement() : RegexClass{codes, codes};
  }

  char32_t parse_hex(int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) fail(fmt::format("an escape needs {} hexadecimal digits", digits));
      code = code * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    return check_code(code);
  }

  char32_t parse_unicode() {
    if (take("{")) {
      char32_t code = 0;
      int digits = 0;
      for (; hex_digit(peek()) >= 0 && digits < 8; ++digits)
        code = code * 16 + static_cast<char32_t>(hex_digit(text_[at_++]));
      if (digits == 0 || !take("}")) fail("expected \\u{H}, with up to 8 hexadecimal digits");
      return check_code(code);
    }
    const size_t begin = at_;
    char32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) fail("an escape needs 4 hexadecimal digits");
      code = code * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
      const char32_t low = parse_low_surrogate();
      return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000) {
      at_ = begin;
      fail("half a surrogate pair is no character");
    }
    return code;
  }

  char32_t parse_low_surrogate() {
    char32_t code = 0;
    for (int i = 0; i < 4 && hex_digit(peek()) >= 0; ++i)
      code = code * 16 + static_cast<char32_t>(hex_digit(text_[at_++]));
    if (code < 0xDC00 || code > 0xDFFF) fail("half a surrogate pair is no character");
    return code;
  }

  char32_t check_code(char32_t code) const {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail(fmt::format("U+{:X} is no character", static_cast<uint32_t>(code)));
    return code;
  }

  GrammarBuilder& builder_;
  std::string_view text_;
  const EncodeChars& encode_;
  const std::string& where_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<char32_t> single_;  // the character that was parsed last, where it was one
};

}  // namespace

std::vector<RegexBranch> parse_regex(GrammarBuilder& builder, std::string_view pattern,
                                     const EncodeChars& encode, const std::string& where) {
  return RegexParser(builder, pattern, encode, where).parse();
}

GrammarBuilder::Expr matches_whole(GrammarBuilder& builder, const std::vector<RegexBranch>& branches) {
  std::vector<GrammarBuilder::Expr> alternatives;
  for (const RegexBranch& branch : branches) alternatives.push_back(branch.expr);
  return builder.either(std::move(alternatives));
}

GrammarBuilder::Expr holds_match(GrammarBuilder& builder, const std::vector<RegexBranch>& branches,
                                 const EncodeChars& encode) {
  const GrammarBuilder::Expr anything =
      builder.repeat(encode(CodeRanges::all()), 0, GrammarBuilder::kUnbounded);
  std::vector<GrammarBuilder::Expr> alternatives;
  for (const RegexBranch& branch : branches) {
    alternatives.push_back(builder.sequence({branch.from_start ? builder.empty() : anything, branch.expr,
                                             branch.to_end ? builder.empty() : anything}));
  }
  return builder.either(std::move(alternatives));
}

}  // namespace qwench
