#include "grammar/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/utf8.h"
#include "grammar/grammar_builder.h"

namespace qwench {
namespace {

constexpr int kDeepestGroup = 200;
constexpr int kMostCounted = 1000000;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  GbnfParser(GrammarBuilder& builder, std::string_view text) : builder_(builder), text_(text) {}

  GrammarBuilder::RuleId parse() {
    if (text_.size() > kLargestGrammarText)
      builder_.fail(fmt::format("it has {} bytes, more than {}", text_.size(), kLargestGrammarText));
    if (!is_valid_utf8(text_)) builder_.fail("it is not valid UTF-8");
    skip_blank(true);
    while (at_ < text_.size()) parse_rule();
    const auto root = rules_.find("root");
    if (root == rules_.end()) builder_.fail("it has no rule \"root\", with which a text begins");
    for (const auto& [name, rule] : rules_) {
      if (!builder_.defined(rule))
        builder_.fail(fmt::format("the rule \"{}\" is used but not defined", name));
    }
    return root->second;
  }

 private:
  using Expr = GrammarBuilder::Expr;

  [[noreturn]] void fail(const std::string& sentence) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    builder_.fail(fmt::format("line {}: {}", line, sentence));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  void skip_blank(bool newlines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string parse_name() {
    const size_t begin = at_;
    while (is_name_char(peek())) ++at_;
    if (at_ == begin) fail("expected a rule's name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  GrammarBuilder::RuleId rule_of(const std::string& name) {
    const auto found = rules_.find(name);
    if (found != rules_.end()) return found->second;
    return rules_.emplace(name, builder_.declare(name)).first->second;
  }

  void parse_rule() {
    const std::string name = parse_name();
    skip_blank(false);
    if (!take("::=")) fail(fmt::format("expected ::= behind the rule's name \"{}\"", name));
    const GrammarBuilder::RuleId rule = rule_of(name);
    if (builder_.defined(rule)) fail(fmt::format("the rule \"{}\" is defined twice", name));
    skip_blank(true);
    builder_.define(rule, parse_alternatives(false));
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
      fail(fmt::format(
          "found '{}', which is not expected here",
          to_valid_utf8(text_.substr(at_, static_cast<size_t>(decode_utf8(text_.substr(at_)).length)))));
    }
    skip_blank(true);
  }

  Expr parse_alternatives(bool nested) {
    if (++depth_ > kDeepestGroup) fail("groups are nested too deeply");
    std::vector<Expr> alternatives;
    do {
      skip_blank(true);
      alternatives.push_back(parse_sequence(nested));
    } while (take("|"));
    --depth_;
    return builder_.either(std::move(alternatives));
  }

  Expr parse_sequence(bool nested) {
    std::vector<Expr> parts;
    while (std::optional<Expr> part = parse_item()) {
      skip_blank(nested);
      while (std::optional<Expr> repeated = parse_count(*part)) {
        part = repeated;
        skip_blank(nested);
      }
      parts.push_back(*part);
    }
    return builder_.sequence(std::move(parts));
  }

  std::optional<Expr> parse_item() {
    const char c = peek();
    if (c == '"') {
      ++at_;
      return parse_literal();
    }
    if (c == '[') {
      ++at_;
      return builder_.chars(parse_class());
    }
    if (c == '.') {
      ++at_;
      return builder_.chars(CodeRanges::all());
    }
    if (c == '(') {
      ++at_;
      const Expr group = parse_alternatives(true);
      skip_blank(true);
      if (!take(")")) fail("a group is not closed: a ) is missing");
      return group;
    }
    if (c == '<' || c == '!') fail("tokens (<...>) are not supported; write their text in quotes");
    if (!is_name_char(c)) return std::nullopt;
    return builder_.ref(rule_of(parse_name()));
  }

  std::optional<Expr> parse_count(Expr part) {
    if (take("*")) return builder_.repeat(part, 0, GrammarBuilder::kUnbounded);
    if (take("+")) return builder_.repeat(part, 1, GrammarBuilder::kUnbounded);
    if (take("?")) return builder_.optional(part);
    if (!take("{")) return std::nullopt;
    skip_blank(false);
    const int least = parse_number();
    int most = least;
    skip_blank(false);
    if (take(",")) {
      skip_blank(false);
      most = peek() == '}' ? GrammarBuilder::kUnbounded : parse_number();
      skip_blank(false);
    }
    if (!take("}")) fail("expected {m}, {m,} or {m,n}");
    if (most != GrammarBuilder::kUnbounded && most < least)
      fail(fmt::format("the repetition {{{},{}}} ends below where it begins", least, most));
    return builder_.repeat(part, least, most);
  }

  int parse_number() {
    if (peek() < '0' || peek() > '9') fail("expected {m}, {m,} or {m,n}");
    int number = 0;
    while (peek() >= '0' && peek() <= '9') {
      number = number * 10 + (text_[at_++] - '0');
      if (number > kMostCounted) fail(fmt::format("a count of repetitions is above {}", kMostCounted));
    }
    return number;
  }

  char32_t parse_char() {
    if (at_ >= text_.size()) fail("a quote or a class is not closed");
    if (!take("\\")) {
      const Utf8Char c = decode_utf8(text_.substr(at_));
      at_ += static_cast<size_t>(c.length);
      return c.code;
    }
    const char c = peek();
    ++at_;
    switch (c) {
      case 'x':
        return parse_hex(2);
      case 'u':
        return parse_hex(4);
      case 'U':
        return parse_hex(8);
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<char32_t>(c);
      default:
        --at_;
        fail(
            "an escape is not known; there are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH "
            "\\UHHHHHHHH");
    }
  }

  char32_t parse_hex(int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail(fmt::format("an escape needs {} hexadecimal digits", digits));
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail(fmt::format("U+{:X} is no character", static_cast<uint32_t>(code)));
    return code;
  }

  Expr parse_literal() {
    std::string literal;
    while (peek() != '"' || at_ >= text_.size()) append_utf8(literal, parse_char());
    ++at_;
    return builder_.literal(literal);
  }

  CodeRanges parse_class() {
    const bool negated = take("^");
    std::vector<CodeRange> ranges;
    while (peek() != ']' || at_ >= text_.size()) {
      const char32_t first = parse_char();
      char32_t last = first;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = parse_char();
        if (last < first) fail("a range ends below where it begins");
      }
      ranges.push_back({first, last});
    }
    ++at_;
    const CodeRanges set(std::move(ranges));
    return negated ? set.complement() : set;
  }

  GrammarBuilder& builder_;
  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, GrammarBuilder::RuleId> rules_;
};

}  // namespace

GrammarBuilder::RuleId add_gbnf(GrammarBuilder& builder, std::string_view text) {
  return GbnfParser(builder, text).parse();
}

std::shared_ptr<const Grammar> compile_gbnf(std::string_view text) {
  GrammarBuilder builder("the grammar");
  return builder.build(add_gbnf(builder, text));
}

}  // namespace qwench
