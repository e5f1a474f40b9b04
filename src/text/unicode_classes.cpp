#include "text/unicode_classes.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "core/utf8.h"

namespace qwench::unicode {
namespace {

/// Calls f(first, last, value) for each run of a run table.
template <typename F>
void for_each_run(const uint32_t* runs, size_t count, F&& f) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t last = i + 1 < count ? (runs[i + 1] >> 8) - 1 : static_cast<uint32_t>(kLastCodePoint);
    f(runs[i] >> 8, last, runs[i] & 0xFF);
  }
}

std::string folded_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

constexpr uint32_t bit(Category c) { return 1U << c; }
constexpr uint32_t kLetters = bit(Lu) | bit(Ll) | bit(Lt) | bit(Lm) | bit(Lo);
constexpr uint32_t kMarks = bit(Mn) | bit(Mc) | bit(Me);
constexpr uint32_t kNumbers = bit(Nd) | bit(Nl) | bit(No);
constexpr uint32_t kPunctuations = bit(Pc) | bit(Pd) | bit(Ps) | bit(Pe) | bit(Pi) | bit(Pf) | bit(Po);
constexpr uint32_t kSymbols = bit(Sm) | bit(Sc) | bit(Sk) | bit(So);
constexpr uint32_t kSeparators = bit(Zs) | bit(Zl) | bit(Zp);
constexpr uint32_t kOthers = bit(Cc) | bit(Cf) | bit(Cs) | bit(Co) | bit(Cn);

/// Short and long names of the general categories (Unicode's PropertyValueAliases).
const std::map<std::string, uint32_t>& category_names() {
  static const std::map<std::string, uint32_t> names = {
      {"l", kLetters},
      {"letter", kLetters},
      {"lc", bit(Lu) | bit(Ll) | bit(Lt)},
      {"casedletter", bit(Lu) | bit(Ll) | bit(Lt)},
      {"lu", bit(Lu)},
      {"uppercaseletter", bit(Lu)},
      {"ll", bit(Ll)},
      {"lowercaseletter", bit(Ll)},
      {"lt", bit(Lt)},
      {"titlecaseletter", bit(Lt)},
      {"lm", bit(Lm)},
      {"modifierletter", bit(Lm)},
      {"lo", bit(Lo)},
      {"otherletter", bit(Lo)},
      {"m", kMarks},
      {"mark", kMarks},
      {"combiningmark", kMarks},
      {"mn", bit(Mn)},
      {"nonspacingmark", bit(Mn)},
      {"mc", bit(Mc)},
      {"spacingmark", bit(Mc)},
      {"me", bit(Me)},
      {"enclosingmark", bit(Me)},
      {"n", kNumbers},
      {"number", kNumbers},
      {"nd", bit(Nd)},
      {"decimalnumber", bit(Nd)},
      {"digit", bit(Nd)},
      {"nl", bit(Nl)},
      {"letternumber", bit(Nl)},
      {"no", bit(No)},
      {"othernumber", bit(No)},
      {"p", kPunctuations},
      {"punct", kPunctuations},
      {"punctuation", kPunctuations},
      {"pc", bit(Pc)},
      {"connectorpunctuation", bit(Pc)},
      {"pd", bit(Pd)},
      {"dashpunctuation", bit(Pd)},
      {"ps", bit(Ps)},
      {"openpunctuation", bit(Ps)},
      {"pe", bit(Pe)},
      {"closepunctuation", bit(Pe)},
      {"pi", bit(Pi)},
      {"initialpunctuation", bit(Pi)},
      {"pf", bit(Pf)},
      {"finalpunctuation", bit(Pf)},
      {"po", bit(Po)},
      {"otherpunctuation", bit(Po)},
      {"s", kSymbols},
      {"symbol", kSymbols},
      {"sm", bit(Sm)},
      {"mathsymbol", bit(Sm)},
      {"sc", bit(Sc)},
      {"currencysymbol", bit(Sc)},
      {"sk", bit(Sk)},
      {"modifiersymbol", bit(Sk)},
      {"so", bit(So)},
      {"othersymbol", bit(So)},
      {"z", kSeparators},
      {"separator", kSeparators},
      {"zs", bit(Zs)},
      {"spaceseparator", bit(Zs)},
      {"zl", bit(Zl)},
      {"lineseparator", bit(Zl)},
      {"zp", bit(Zp)},
      {"paragraphseparator", bit(Zp)},
      {"c", kOthers},
      {"other", kOthers},
      {"cc", bit(Cc)},
      {"control", bit(Cc)},
      {"cntrl", bit(Cc)},
      {"cf", bit(Cf)},
      {"format", bit(Cf)},
      {"cs", bit(Cs)},
      {"surrogate", bit(Cs)},
      {"co", bit(Co)},
      {"privateuse", bit(Co)},
      {"cn", bit(Cn)},
      {"unassigned", bit(Cn)},
  };
  return names;
}

std::optional<CodePointSet> other_property(const std::string& name) {
  if (name == "any") return CodePointSet(0, kLastCodePoint);
  if (name == "ascii") return CodePointSet(0, 0x7F);
  if (name == "assigned") return CodePointSet::of_categories(bit(Cn)).inverted();
  if (name == "blank") return CodePointSet::of_categories(bit(Zs)) | CodePointSet('\t', '\t');
  if (name == "alnum") return named_set("alphabetic") | CodePointSet::of_categories(bit(Nd));
  if (name == "print") return named_set("pattern_graph") | CodePointSet::of_categories(bit(Zs));
  if (name == "xdigit" || name == "asciihexdigit") {
    return CodePointSet::of_ranges({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  }
  static const std::map<std::string, std::string_view> names = {
      {"alphabetic", "alphabetic"},
      {"alpha", "alphabetic"},
      {"lowercase", "lowercase"},
      {"lower", "lowercase"},
      {"uppercase", "uppercase"},
      {"upper", "uppercase"},
      {"whitespace", "white_space"},
      {"space", "white_space"},
      {"word", "pattern_word"},
      {"graph", "pattern_graph"},
      {"emoji", "emoji"},
      {"emojipresentation", "emoji_presentation"},
      {"emojimodifier", "emoji_modifier"},
      {"extendedpictographic", "extended_pictographic"},
  };
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return named_set(found->second);
}

char32_t simple_lowercase(char32_t c) {
  const auto* end = lowercase_runs + lowercase_runs_size;
  const auto* run =
      std::upper_bound(lowercase_runs, end, c, [](char32_t x, const CaseRun& r) { return x < r.first; });
  // Runs of step 2 may interlock, so the one before the last candidate is looked at too.
  for (int back = 0; back < 2 && run != lowercase_runs; ++back) {
    --run;
    if (c <= run->last && (c - run->first) % run->step == 0) return run->target + (c - run->first);
  }
  return c;
}

/// Characters with another case, each with the smallest code point of its kind.
const std::unordered_map<char32_t, std::vector<char32_t>>& case_variants() {
  static const auto variants = [] {
    std::unordered_map<char32_t, std::vector<char32_t>> by_fold;
    // Simple folding: the lower case of the upper case joins s with U+017F and the forms of sigma. Three
    // pairs that are equal only in their full folding are added.
    const auto fold = [](char32_t c) {
      if (c == 0x1FD3) return char32_t{0x390};
      if (c == 0x1FE3) return char32_t{0x3B0};
      if (c == 0xFB05) return char32_t{0xFB06};
      return simple_lowercase(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    };
    const auto add = [&](char32_t c) {
      // The i with a dot and the one without are Turkish variants, not simple ones.
      if (c != 0x130 && c != 0x131) by_fold[fold(c)].push_back(c);
    };
    for_each_run(category_runs, category_runs_size, [&](uint32_t first, uint32_t last, uint32_t value) {
      const bool cased = value <= Lt || value == Lo || value == Mn || value == Nl || value == So;
      if (!cased || last - first > 1000) return;  // no script with case has a run so long
      for (uint32_t c = first; c <= last; ++c) add(c);
    });
    std::unordered_map<char32_t, std::vector<char32_t>> out;
    for (const auto& [key, members] : by_fold) {
      if (members.size() < 2) continue;
      for (const char32_t c : members) out[c] = members;
    }
    return out;
  }();
  return variants;
}

}  // namespace

PropertyTable::PropertyTable() {
  std::vector<uint16_t> flat(size_t{kLastCodePoint} + 1);
  for_each_run(category_runs, category_runs_size, [&](uint32_t first, uint32_t last, uint32_t value) {
    std::fill(flat.begin() + first, flat.begin() + last + 1, static_cast<uint16_t>(value));
  });
  for_each_run(normalization_runs, normalization_runs_size,
               [&](uint32_t first, uint32_t last, uint32_t value) {
                 if (value == 0) return;
                 for (uint32_t c = first; c <= last; ++c)
                   flat[c] = static_cast<uint16_t>(flat[c] | value << 10);
               });
  const std::pair<std::string_view, uint16_t> sets[] = {{"white_space", kWhiteSpace},
                                                        {"word", kWord},
                                                        {"numeric", kNumeric},
                                                        {"punctuation", kPunctuation},
                                                        {"nonspacing_mark", kNonspacingMark}};
  for (const auto& [name, flag] : sets) {
    for (const Range r : named_set(name).ranges()) {
      for (uint32_t c = r.first; c <= r.last; ++c) flat[c] = static_cast<uint16_t>(flat[c] | flag);
    }
  }
  std::map<std::vector<uint16_t>, uint16_t> seen;
  for (size_t block = 0; block < index_.size(); ++block) {
    std::vector<uint16_t> content(flat.begin() + static_cast<ptrdiff_t>(block << 8),
                                  flat.begin() + static_cast<ptrdiff_t>((block + 1) << 8));
    const auto [place, added] = seen.emplace(std::move(content), static_cast<uint16_t>(seen.size()));
    if (added) blocks_.insert(blocks_.end(), place->first.begin(), place->first.end());
    index_[block] = place->second;
  }
}

const PropertyTable& property_table() {
  static const PropertyTable table;
  return table;
}

size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080ULL) break;
  }
  while (i < text.size() && static_cast<uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

void append_lowercase(std::string& out, char32_t c) {
  if (c == 0x130) {  // the one character whose lower case is two
    out += "i\xCC\x87";
  } else {
    append_utf8(out, simple_lowercase(c));
  }
}

CodePointSet CodePointSet::of_ranges(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
  CodePointSet out;
  for (const Range r : ranges) {
    if (!out.ranges_.empty() && r.first <= out.ranges_.back().last + 1) {
      out.ranges_.back().last = std::max(out.ranges_.back().last, r.last);
    } else {
      out.ranges_.push_back(r);
    }
  }
  return out;
}

CodePointSet CodePointSet::of_categories(uint32_t mask) {
  std::vector<Range> ranges;
  for_each_run(category_runs, category_runs_size, [&](uint32_t first, uint32_t last, uint32_t value) {
    if (mask >> value & 1) ranges.push_back({first, last});
  });
  return of_ranges(std::move(ranges));
}

bool CodePointSet::contains(char32_t c) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), c, [](char32_t x, Range r) { return x < r.first; });
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

CodePointSet CodePointSet::operator|(const CodePointSet& other) const {
  std::vector<Range> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return of_ranges(std::move(all));
}

CodePointSet CodePointSet::inverted() const {
  CodePointSet out;
  uint32_t next = 0;
  for (const Range r : ranges_) {
    if (r.first > next) out.ranges_.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastCodePoint) out.ranges_.push_back({next, static_cast<uint32_t>(kLastCodePoint)});
  return out;
}

CodePointSet CodePointSet::operator&(const CodePointSet& other) const {
  return (inverted() | other.inverted()).inverted();
}

CodePointSet CodePointSet::operator^(const CodePointSet& other) const {
  return (*this & other.inverted()) | (other & inverted());
}

CodePointSet CodePointSet::case_closed() const {
  std::vector<Range> all = ranges_;
  for (const auto& [c, members] : case_variants()) {
    if (!contains(c)) continue;
    for (const char32_t m : members) all.push_back({m, m});
  }
  return of_ranges(std::move(all));
}

bool CodePointSet::operator==(const CodePointSet& other) const {
  return std::equal(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
                    [](Range a, Range b) { return a.first == b.first && a.last == b.last; });
}

const CodePointSet& named_set(std::string_view name) {
  static const auto sets = [] {
    std::map<std::string_view, CodePointSet> out;
    for (size_t i = 0; i < named_sets_size; ++i) {
      const NamedSet& set = named_sets[i];
      std::vector<Range> differences(set.differences, set.differences + set.differences_size);
      out[set.name] =
          CodePointSet::of_categories(set.category_mask) ^ CodePointSet::of_ranges(std::move(differences));
    }
    return out;
  }();
  return sets.at(name);
}

std::optional<CodePointSet> property_set(std::string_view name) {
  const std::string wanted = folded_name(name);
  const auto found = category_names().find(wanted);
  if (found != category_names().end()) return CodePointSet::of_categories(found->second);
  if (auto other = other_property(wanted)) return other;
  for (size_t i = 0; i < script_names_size; ++i) {
    if (folded_name(script_names[i]) != wanted) continue;
    std::vector<Range> ranges;
    for_each_run(script_runs, script_runs_size, [&](uint32_t first, uint32_t last, uint32_t value) {
      if (value == i) ranges.push_back({first, last});
    });
    return CodePointSet::of_ranges(std::move(ranges));
  }
  return std::nullopt;
}

}  // namespace qwench::unicode
