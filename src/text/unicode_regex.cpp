#include "text/unicode_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <map>

#include "checkpoint/printable.h"
#include "qwench/error.h"
#include "text/unicode_regex_parser.h"

namespace qwench::unicode {
namespace {

// A step that needs more than this is a pattern gone wrong: the known ones stay below a few per character.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKib = 256 << 10;

/// Which of the pattern's sets hold a character, as one small number per different answer.
class ClassMap {
 public:
  /// False when there are more than 256 classes.
  bool build(const std::vector<CodePointSet>& sets) {
    std::map<uint32_t, std::vector<int>> changes;  // code point -> sets that begin or end there
    for (size_t i = 0; i < sets.size(); ++i) {
      for (const Range r : sets[i].ranges()) {
        changes[r.first].push_back(static_cast<int>(i));
        changes[r.last + 1].push_back(static_cast<int>(i));
      }
    }
    changes[0];
    changes.erase(kLastCodePoint + 1);
    std::map<std::vector<bool>, uint8_t> ids;
    std::vector<bool> inside(sets.size());
    members_.resize(sets.size());
    std::string flat(size_t{kLastCodePoint} + 1, '\0');  // a class a byte
    for (auto place = changes.begin(); place != changes.end(); ++place) {
      for (const int i : place->second) inside[static_cast<size_t>(i)].flip();
      const auto [id, added] = ids.emplace(inside, static_cast<uint8_t>(ids.size()));
      if (added) {
        if (ids.size() > 256) return false;
        for (size_t i = 0; i < sets.size(); ++i) {
          if (inside[i]) members_[i].push_back(id->second);
        }
      }
      const auto next = std::next(place);
      const size_t last = next == changes.end() ? size_t{kLastCodePoint} + 1 : next->first;
      std::fill(flat.begin() + place->first, flat.begin() + static_cast<ptrdiff_t>(last),
                static_cast<char>(id->second));
    }
    std::map<std::string, uint16_t> seen;
    index_.resize((kLastCodePoint >> 8) + 1);
    for (size_t block = 0; block < index_.size(); ++block) {
      const auto [found, added] =
          seen.emplace(flat.substr(block << 8, 256), static_cast<uint16_t>(seen.size()));
      if (added) blocks_ += found->first;
      index_[block] = found->second;
    }
    return true;
  }

  uint8_t operator[](char32_t c) const {
    return static_cast<uint8_t>(blocks_[size_t{index_[c >> 8]} << 8 | (c & 0xFF)]);
  }

  /// PCRE2 syntax for one byte whose class belongs to the set.
  std::string syntax(int set) const {
    const auto& ids = members_[static_cast<size_t>(set)];
    if (ids.empty()) return "(?!)";
    std::string out;
    for (const uint8_t id : ids) out += fmt::format("\\x{:02x}", id);
    return ids.size() == 1 ? out : "[" + out + "]";
  }

 private:
  std::vector<uint16_t> index_;
  std::string blocks_;
  std::vector<std::vector<uint8_t>> members_;  // by set: the classes it is made of
};

std::string utf_syntax(const CodePointSet& set) {
  if (set.empty()) return "(?!)";
  std::string out = "[";
  for (const Range r : set.ranges()) {
    // PCRE2 refuses surrogates; no well-formed text holds them.
    const auto put = [&](uint32_t first, uint32_t last) {
      if (first <= last) out += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", first, last);
    };
    put(r.first, std::min<uint32_t>(r.last, 0xD7FF));
    put(std::max<uint32_t>(r.first, 0xE000), r.last);
  }
  return out == "[" ? "(?!)" : out + "]";
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

struct Regex::Program {
  ClassMap classes;
  bool by_class = true;  // the subject is class bytes, not UTF-8
  pcre2_code* code = nullptr;
  std::unique_ptr<pcre2_match_context, MatchContextDeleter> context;
  std::string name;  // for errors

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { pcre2_code_free(code); }

  /// Runs one match from `start`; false when there is none.
  bool match(std::string_view subject, size_t start, pcre2_match_data* data) const {
    const auto* text = reinterpret_cast<PCRE2_SPTR>(subject.data());
    int rc = pcre2_match(code, text, subject.size(), start, PCRE2_NO_UTF_CHECK, data, context.get());
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its state on the heap
      rc = pcre2_match(code, text, subject.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                       context.get());
    }
    if (rc == PCRE2_ERROR_NOMATCH) return false;
    if (rc < 0) {
      throw Error(
          ErrorKind::unsupported,
          fmt::format("{}: the pattern backtracks too much on this text (PCRE2 error {}); shorten the text",
                      name, rc));
    }
    return true;
  }
};

Regex::Regex(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Regex::~Regex() = default;

std::shared_ptr<const Regex> Regex::compile(std::string_view pattern, const std::string& what) {
  const ParsedPattern parsed = parse_pattern(pattern, what);
  auto program = std::make_unique<Program>();
  program->name = what;
  program->by_class = !parsed.has_backreferences && program->classes.build(parsed.sets);
  std::string syntax;
  for (const auto& part : parsed.parts) {
    if (part.set < 0)
      syntax += part.text;
    else if (program->by_class)
      syntax += program->classes.syntax(part.set);
    else
      syntax += utf_syntax(parsed.sets[static_cast<size_t>(part.set)]);
  }
  int error = 0;
  size_t place = 0;
  const uint32_t options = program->by_class ? 0 : uint32_t{PCRE2_UTF};
  program->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(syntax.data()), syntax.size(), options, &error,
                                &place, nullptr);
  if (program->code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    throw Error(ErrorKind::malformed,
                fmt::format("{}: the pattern {} cannot be compiled: {}", what, printable(pattern),
                            reinterpret_cast<const char*>(message)));
  }
  pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE);  // without JIT the interpreter serves
  program->context.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(program->context.get(), kMatchLimit);
  pcre2_set_heap_limit(program->context.get(), kHeapLimitKib);
  return std::shared_ptr<const Regex>(new Regex(std::move(program)));
}

void Regex::find_all(std::string_view text, std::vector<ByteSpan>& matches) const {
  std::string classes;
  std::string_view subject = text;
  if (program_->by_class) {
    classes.reserve(text.size());
    for (const char* p = text.data(); p != text.data() + text.size();) {
      classes.push_back(static_cast<char>(program_->classes[next_char(p)]));
    }
    subject = classes;
  }
  // Offsets of the subject, which only grow, to bytes of the text.
  size_t at_subject = 0;
  size_t at_text = 0;
  const auto to_text = [&](size_t offset) {
    if (!program_->by_class) return offset;
    for (; at_subject < offset; ++at_subject) at_text += utf8_length(text[at_text]);
    return at_text;
  };
  const std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(
      pcre2_match_data_create_from_pattern(program_->code, nullptr));
  if (!data) throw Error(ErrorKind::out_of_memory, "no memory for a pattern's match");
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t last_end = kNone;
  for (size_t start = 0; start <= subject.size() && program_->match(subject, start, data.get());) {
    const size_t* ends = pcre2_get_ovector_pointer(data.get());
    const size_t first = ends[0];
    const size_t end = ends[1];
    if (first == end && end == last_end) {
      start = end == subject.size() ? end + 1 : end + (program_->by_class ? 1 : utf8_length(subject[end]));
      continue;
    }
    if (first > end)
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: the pattern sets its start behind its end", program_->name));
    const size_t from = to_text(first);
    matches.push_back({from, to_text(end)});
    start = last_end = end;
  }
}

}  // namespace qwench::unicode
