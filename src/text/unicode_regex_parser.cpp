#include "text/unicode_regex_parser.h"

#include <fmt/format.h>

#include "text/unicode_regex_class.h"

namespace qwench::unicode {
namespace {

constexpr size_t kMaxGroupDepth = 200;   // PCRE2's own limit is 250
constexpr size_t kMaxPattern = 1 << 16;  // bytes

class Parser {
 public:
  Parser(std::string_view pattern, const std::string& what) : reader_(pattern, what) {
    if (pattern.size() > kMaxPattern)
      reader_.fail_unsupported(fmt::format("more than {} bytes", kMaxPattern));
  }

  ParsedPattern parse() {
    groups_.push_back({0, {}, 0});
    while (!reader_.at_end()) parse_next();
    if (groups_.size() != 1) reader_.fail("a ( without its )");
    close_options(groups_.back());
    return std::move(out_);
  }

 private:
  struct Options {
    bool ignore_case = false;
    bool dot_all = false;
    bool extended = false;
  };
  struct Group {
    size_t first_part;  // where its text begins
    Options outer;      // to return to
    int option_groups;  // "(?i)" opens a group that ends with its parent
  };

  void text(std::string s) { out_.parts.push_back({std::move(s), -1}); }

  int set_index(const CodePointSet& set) {
    for (size_t i = 0; i < out_.sets.size(); ++i) {
      if (out_.sets[i] == set) return static_cast<int>(i);
    }
    out_.sets.push_back(set);
    return static_cast<int>(out_.sets.size()) - 1;
  }
  void set(const CodePointSet& s) { out_.parts.push_back({"", set_index(s)}); }

  /// An atom is a part or a group; a repeat that follows applies to it.
  void begin_atom() {
    atom_ = out_.parts.size();
    repeated_ = false;
  }
  void atom(const CodePointSet& s) {
    begin_atom();
    set(s);
  }
  void no_atom() { atom_ = kNone; }

  void character(char32_t c) {
    const CodePointSet one(c, c);
    atom(options_.ignore_case ? one.case_closed() : one);
  }

  static CodePointSet newline() { return {'\n', '\n'}; }

  void parse_next() {
    if (options_.extended && skip_extended()) return;
    if (parse_repeat()) return;
    const char c = reader_.peek();
    switch (c) {
      case '[':
        reader_.take();
        atom(read_class(reader_, options_.ignore_case));
        return;
      case '(':
        reader_.take();
        open_group();
        return;
      case ')':
        reader_.take();
        close_group();
        return;
      case '|':
        reader_.take();
        text("|");
        no_atom();
        return;
      case '.':
        reader_.take();
        atom(options_.dot_all ? CodePointSet(0, kLastCodePoint) : newline().inverted());
        return;
      case '^':  // the beginning of any line
        reader_.take();
        text("(?:\\A|(?<=");
        set(newline());
        text(")(?!\\z))");
        no_atom();
        return;
      case '$':  // the end of any line
        reader_.take();
        text("(?!");
        set(newline().inverted());
        text(")");
        no_atom();
        return;
      case '\\':
        reader_.take();
        parse_escape();
        return;
      default:
        character(reader_.take());
    }
  }

  bool skip_extended() {
    const char c = reader_.peek();
    if (c == '#') {
      while (!reader_.at_end() && reader_.peek() != '\n') reader_.take();
      return true;
    }
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      reader_.take();
      return true;
    }
    return false;
  }

  /// * + ? {n,m} and their lazy and possessive forms.
  bool parse_repeat() {
    std::string repeat;
    bool interval = false;
    bool exact = false;
    const char c = reader_.peek();
    if (c == '*' || c == '+' || c == '?') {
      repeat = c;
      reader_.take();
    } else if (c == '{') {
      const size_t start = reader_.place();
      repeat = read_interval(exact);
      if (repeat.empty()) {
        reader_.go_to(start);
        return false;
      }
      interval = true;
    } else {
      return false;
    }
    if (atom_ == kNone) reader_.fail("a repeat of nothing");
    if (repeated_) {  // a repeat of a repeat
      out_.parts.insert(out_.parts.begin() + static_cast<ptrdiff_t>(atom_), {"(?:", -1});
      text(")");
    }
    if (reader_.peek() == '?' && !exact) {
      reader_.take();
      repeat += '?';
    } else if (reader_.peek() == '+' && !interval) {  // Ruby's {n,m}+ is a repeat of a repeat
      reader_.take();
      repeat += '+';
    }
    text(std::move(repeat));
    repeated_ = true;
    return true;
  }

  /// "{n,m}" in PCRE2's form, or nothing when the brace is only a brace.
  std::string read_interval(bool& exact) {
    reader_.take();
    const auto digits = [&] {
      std::string out;
      while (reader_.peek() >= '0' && reader_.peek() <= '9' && out.size() < 7)
        out.push_back(static_cast<char>(reader_.take()));
      return out;
    };
    const std::string low = digits();
    std::string high = low;
    exact = !reader_.accept(",");
    if (!exact) high = digits();
    if (!reader_.accept("}") || (low.empty() && high.empty())) return {};
    if (exact) return "{" + low + "}";
    return "{" + (low.empty() ? "0" : low) + "," + high + "}";
  }

  void open_group() {
    if (groups_.size() > kMaxGroupDepth)
      reader_.fail_unsupported(fmt::format("groups nested more than {} deep", kMaxGroupDepth));
    if (!reader_.accept("?")) return push_group(captures_ ? "(" : "(?:");
    for (const std::string_view kind : {":", "=", "!", ">", "<=", "<!"}) {
      if (reader_.accept(kind)) return push_group("(?" + std::string(kind));
    }
    if (reader_.accept("#")) {
      while (!reader_.at_end() && reader_.peek() != ')') reader_.take();
      if (!reader_.accept(")")) reader_.fail("a comment without its )");
      return;
    }
    if (reader_.accept("<")) {
      captures_ = false;  // with named groups, only those capture
      return push_group("(?<" + read_name('>') + ">");
    }
    open_options();
  }

  std::string read_name(char close) {
    std::string name;
    while (!reader_.at_end() && reader_.peek() != close) {
      const char c = reader_.peek();
      const bool fine =
          (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
      if (!fine || name.size() >= 32) reader_.fail("a group name that is not of letters, digits and _");
      name.push_back(static_cast<char>(reader_.take()));
    }
    if (reader_.at_end() || name.empty()) reader_.fail("a group without a name");
    reader_.take();
    return name;
  }

  void open_options() {
    Options options = options_;
    bool on = true;
    for (;;) {
      if (reader_.accept("-"))
        on = false;
      else if (reader_.accept("i"))
        options.ignore_case = on;
      else if (reader_.accept("m"))
        options.dot_all = on;
      else if (reader_.accept("x"))
        options.extended = on;
      else
        break;
    }
    if (reader_.accept(":")) {
      push_group("(?:");
      options_ = options;
    } else if (reader_.accept(")")) {  // until the end of the group, over the bars that follow
      text("(?:");
      ++groups_.back().option_groups;
      options_ = options;
      no_atom();
    } else {
      reader_.fail_unsupported(
          "a kind of group other than (?: (?= (?! (?<= (?<! (?> (?<name> (?# and the options i, m, x");
    }
  }

  void push_group(std::string opening) {
    groups_.push_back({out_.parts.size(), options_, 0});
    text(std::move(opening));
    no_atom();
  }

  void close_options(const Group& group) {
    for (int i = 0; i < group.option_groups; ++i) text(")");
  }

  void close_group() {
    if (groups_.size() == 1) reader_.fail("a ) without its (");
    close_options(groups_.back());
    text(")");
    atom_ = groups_.back().first_part;
    repeated_ = false;
    options_ = groups_.back().outer;
    groups_.pop_back();
  }

  void word_boundary(bool inverted) {
    const CodePointSet& word = named_set("pattern_word");
    const auto look = [&](const char* how) {
      text(how);
      set(word);
      text(")");
    };
    text("(?:");
    look("(?<=");
    look(inverted ? "(?=" : "(?!");
    text("|");
    look("(?<!");
    look(inverted ? "(?!" : "(?=");
    text(")");
    no_atom();
  }

  void parse_escape() {
    const char c = reader_.peek();
    const auto anchor = [&](const char* pcre) {
      reader_.take();
      text(pcre);
      no_atom();
    };
    switch (c) {
      case 'A':
        return anchor("\\A");
      case 'z':
        return anchor("\\z");
      case 'G':
        return anchor("\\G");
      case 'K':
        return anchor("\\K");
      case 'Z':
        anchor("(?=");
        set(newline());
        text("?\\z)");
        return;
      case 'b':
      case 'B':
        reader_.take();
        return word_boundary(c == 'B');
      case 'N':
        reader_.take();
        return atom(newline().inverted());
      case 'O':
        reader_.take();
        return atom(CodePointSet(0, kLastCodePoint));
      case 'R':
        reader_.take();
        begin_atom();
        text("(?>");
        set({'\r', '\r'});
        set(newline());
        text("|");
        set(CodePointSet::of_ranges({{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}));
        text(")");
        return;
      case 'k': {
        reader_.take();
        if (!reader_.accept("<")) reader_.fail("\\k without <name>");
        back_reference(read_name('>'));
        return;
      }
      case 'X':
      case 'y':
      case 'Y':
        reader_.fail_unsupported("grapheme clusters (\\X, \\y, \\Y)");
      case 'g':
        reader_.fail_unsupported("calls of groups (\\g)");
      default:
        break;
    }
    if (c >= '1' && c <= '9') {
      reader_.take();
      return back_reference(std::string(1, c));
    }
    const Escape escape = read_escape(reader_);
    if (escape.set) return atom(*escape.set);
    character(escape.code);
  }

  void back_reference(const std::string& name) {
    out_.has_backreferences = true;
    begin_atom();
    const std::string reference = std::string(name[0] <= '9' ? "\\g{" : "\\k{") + name + "}";
    text(options_.ignore_case ? "(?i:" + reference + ")" : reference);
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);

  PatternReader reader_;
  ParsedPattern out_;
  Options options_;
  std::vector<Group> groups_;
  size_t atom_ = kNone;
  bool repeated_ = false;  // the last atom has a repeat already
  bool captures_ = true;
};

}  // namespace

ParsedPattern parse_pattern(std::string_view pattern, const std::string& what) {
  return Parser(pattern, what).parse();
}

}  // namespace qwench::unicode
