#include "text/unicode_normalization.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "core/utf8.h"
#include "text/unicode_classes.h"

namespace qwench::unicode {
namespace {

struct Member {
  utf8proc_int32_t code;
  int combining_class;
};

uint16_t not_inert_flag(NormalizationForm form) {
  switch (form) {
    case NormalizationForm::nfc:
      return kNotInertNfc;
    case NormalizationForm::nfd:
      return kNotInertNfd;
    case NormalizationForm::nfkc:
      return kNotInertNfkc;
    case NormalizationForm::nfkd:
      return kNotInertNfkd;
  }
  return 0;
}

bool is_compatibility(NormalizationForm form) {
  return form == NormalizationForm::nfkc || form == NormalizationForm::nfkd;
}

bool is_composed(NormalizationForm form) {
  return form == NormalizationForm::nfc || form == NormalizationForm::nfkc;
}

/// Appends the decomposition of `c`. Characters that are newer than the reference's normalization data are
/// left as they are, whatever utf8proc knows of them.
void decompose(char32_t c, bool compatibility, std::vector<Member>& out) {
  const PropertyTable& properties = property_table();
  const uint16_t changes = compatibility ? kNotInertNfkd : kNotInertNfd;
  if (!(properties[c] & changes)) {
    out.push_back({static_cast<utf8proc_int32_t>(c), 0});
    return;
  }
  utf8proc_int32_t parts[64];  // the longest decomposition has 18
  int last_bound_class = 0;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 64,
                                             static_cast<utf8proc_option_t>(options), &last_bound_class);
  for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, 64); ++i) {
    const bool combining = properties[static_cast<char32_t>(parts[i])] & kCombining;
    out.push_back({parts[i], combining ? utf8proc_get_property(parts[i])->combining_class : 0});
  }
}

}  // namespace

ByteSpan next_unstable_part(NormalizationForm form, std::string_view text, size_t from) {
  const PropertyTable& properties = property_table();
  const uint16_t flag = not_inert_flag(form);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* p = begin + from;
  const char* last = p;  // the character before p
  for (;;) {
    if (p == end) return {text.size(), text.size()};
    if (static_cast<uint8_t>(*p) < 0x80) {
      const size_t ascii = ascii_prefix({p, static_cast<size_t>(end - p)});
      p += ascii;
      last = p - 1;
      continue;
    }
    const char* next = p;
    if (properties[next_char(next)] & flag) break;
    last = p;
    p = next;
  }
  // The inert character before is the starter that marks may join.
  const char* const start = last;
  while (p != end) {
    const char* next = p;
    if (!(properties[next_char(next)] & flag)) break;
    p = next;
  }
  return {static_cast<size_t>(start - begin), static_cast<size_t>(p - begin)};
}

void append_normalized(NormalizationForm form, std::string_view part, std::string& out) {
  std::vector<Member> members;
  for (const char* p = part.data(); p != part.data() + part.size();) {
    decompose(next_char(p), is_compatibility(form), members);
  }
  // Canonical ordering: each run of marks by its combining classes, keeping the order of equal ones.
  for (size_t i = 0; i < members.size();) {
    if (members[i].combining_class == 0) {
      ++i;
      continue;
    }
    size_t j = i;
    while (j < members.size() && members[j].combining_class != 0) ++j;
    std::stable_sort(members.begin() + static_cast<ptrdiff_t>(i), members.begin() + static_cast<ptrdiff_t>(j),
                     [](const Member& a, const Member& b) { return a.combining_class < b.combining_class; });
    i = j;
  }
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(members.size() + 1);
  for (const Member& m : members) codes.push_back(m.code);
  auto count = static_cast<utf8proc_ssize_t>(codes.size());
  if (is_composed(form) && count > 0) {
    count = utf8proc_normalize_utf32(codes.data(), count,
                                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
}

}  // namespace qwench::unicode
