#include "text/jinja/text_functions.h"

#include <algorithm>

#include "core/utf8.h"
#include "text/jinja/operations.h"
#include "text/jinja/search.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3;

/// Is the capital sigma at `at` the last letter of a word (Unicode 3.13, Final_Sigma)?
bool is_final_sigma(std::string_view text, size_t at) {
  size_t before = at;
  bool cased_before = false;
  while (before > 0) {
    do --before;
    while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80);
    const char32_t c = decode_utf8(text.substr(before)).code;
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  for (size_t after = at + 2; after < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(after));
    if (!is_case_ignorable(c.code)) return !is_cased(c.code);
    after += static_cast<size_t>(c.length);
  }
  return true;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

size_t previous(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

void add_part(Runtime& rt, std::vector<ByteSpan>& parts, ByteSpan part) {
  // A vector that grows has its old elements beside the new ones.
  if (parts.size() == parts.capacity()) rt.heap.check(3 * parts.capacity() * sizeof(ByteSpan));
  rt.step();
  parts.push_back(part);
}

}  // namespace

TrackedText change_case(const TrackedText& text, LetterCase target) {
  const std::string_view view = text.view();
  TrackedText out;
  out.reserve(view.size());
  OriginReader origin(text);
  bool after_cased = false;
  std::string mapped;
  const auto lower = [&](char32_t c, size_t at) {
    if (c == kCapitalSigma)
      append_utf8(mapped, is_final_sigma(view, at) ? 0x3C2 : 0x3C3);
    else
      append_lower(mapped, c);
  };
  for (size_t at = 0; at < view.size();) {
    const Utf8Char c = decode_utf8(view.substr(at));
    mapped.clear();
    switch (target) {
      case LetterCase::upper:
        append_upper(mapped, c.code);
        break;
      case LetterCase::lower:
        lower(c.code, at);
        break;
      case LetterCase::fold:
        append_folded(mapped, c.code);
        break;
      case LetterCase::capitalize:
        if (at == 0)
          append_title(mapped, c.code);
        else
          lower(c.code, at);
        break;
      case LetterCase::title:
        if (after_cased)
          lower(c.code, at);
        else
          append_title(mapped, c.code);
        after_cased = is_cased(c.code);
        break;
      case LetterCase::swap:
        if (is_upper(c.code))
          lower(c.code, at);
        else if (is_lower(c.code))
          append_upper(mapped, c.code);
        else
          append_utf8(mapped, c.code);
        break;
    }
    out.append(mapped, origin.is_input(at));
    at += static_cast<size_t>(c.length);
  }
  return out;
}

ByteSpan strip(std::string_view text, const std::string_view* characters, bool left, bool right) {
  std::u32string set;
  if (characters != nullptr) {
    set = to_utf32(*characters);
    std::sort(set.begin(), set.end());
  }
  const auto drops = [&](char32_t c) {
    return characters == nullptr ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  ByteSpan kept{0, text.size()};
  while (left && kept.begin < kept.end) {
    const Utf8Char c = decode_utf8(text.substr(kept.begin));
    if (!drops(c.code)) break;
    kept.begin += static_cast<size_t>(c.length);
  }
  while (right && kept.end > kept.begin) {
    const size_t start = previous(text, kept.end);
    if (!drops(decode_utf8(text.substr(start)).code)) break;
    kept.end = start;
  }
  return kept;
}

std::vector<ByteSpan> split_spaces(Runtime& rt, std::string_view text, int64_t max) {
  std::vector<ByteSpan> parts;
  size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < text.size()) {
      const Utf8Char c = decode_utf8(text.substr(at));
      if (is_space(c.code) != spaces) break;
      at += static_cast<size_t>(c.length);
    }
  };
  while (true) {
    skip(true);
    if (at >= text.size()) return parts;
    const size_t begin = at;
    if (max >= 0 && static_cast<int64_t>(parts.size()) >= max) {
      add_part(rt, parts, {begin, text.size()});
      return parts;
    }
    skip(false);
    add_part(rt, parts, {begin, at});
  }
}

std::vector<ByteSpan> split_spaces_right(Runtime& rt, std::string_view text, int64_t max) {
  std::vector<ByteSpan> parts;
  size_t at = text.size();
  const auto skip = [&](bool spaces) {
    while (at > 0) {
      const size_t start = previous(text, at);
      if (is_space(decode_utf8(text.substr(start)).code) != spaces) break;
      at = start;
    }
  };
  while (true) {
    skip(true);
    if (at == 0) break;
    const size_t end = at;
    if (max >= 0 && static_cast<int64_t>(parts.size()) >= max) {
      add_part(rt, parts, {0, end});
      break;
    }
    skip(false);
    add_part(rt, parts, {at, end});
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<ByteSpan> split_on(Runtime& rt, std::string_view text, std::string_view separator, int64_t max) {
  std::vector<ByteSpan> parts;
  size_t begin = 0;
  while (max < 0 || static_cast<int64_t>(parts.size()) < max) {
    const size_t found = find_text(rt, text, separator, begin);
    if (found == std::string_view::npos) break;
    add_part(rt, parts, {begin, found});
    begin = found + separator.size();
  }
  add_part(rt, parts, {begin, text.size()});
  return parts;
}

std::vector<ByteSpan> split_on_right(Runtime& rt, std::string_view text, std::string_view separator,
                                     int64_t max) {
  std::vector<ByteSpan> parts;
  size_t end = text.size();
  while (max < 0 || static_cast<int64_t>(parts.size()) < max) {
    const size_t found = text.substr(0, end).rfind(separator);
    if (found == std::string_view::npos) break;
    rt.step(1 + (end - found) / 64 * (1 + separator.size() / 64));
    add_part(rt, parts, {found + separator.size(), end});
    end = found;
  }
  add_part(rt, parts, {0, end});
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<ByteSpan> split_lines(Runtime& rt, std::string_view text, bool keep_ends) {
  std::vector<ByteSpan> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    size_t next = at + static_cast<size_t>(c.length);
    if (is_line_break(c.code)) {
      if (c.code == '\r' && next < text.size() && text[next] == '\n') ++next;
      add_part(rt, lines, {begin, keep_ends ? next : at});
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) add_part(rt, lines, {begin, text.size()});
  return lines;
}

TrackedText replace(Runtime& rt, const TrackedText& text, std::string_view old, const TrackedText& with,
                    int64_t max) {
  const std::string_view view = text.view();
  TrackedText out;
  size_t copied = 0;
  int64_t done = 0;
  rt.work(view.size());
  if (old.empty()) {
    // Before every character and at the end.
    for (size_t at = 0; max < 0 || done < max; ++done) {
      rt.step();
      out.append(with);
      rt.check_size(out.size());
      if (at >= view.size()) break;
      const size_t next = at + static_cast<size_t>(decode_utf8(view.substr(at)).length);
      out.append(text, at, next);
      copied = at = next;
    }
    out.append(text, copied, view.size());
    return out;
  }
  for (size_t at = 0; max < 0 || done < max; ++done) {
    at = find_text(rt, view, old, at);
    if (at == std::string_view::npos) break;
    rt.step();
    out.append(text, copied, at);
    out.append(with);
    rt.check_size(out.size());
    copied = at = at + old.size();
  }
  out.append(text, copied, view.size());
  return out;
}

TrackedText pad(Runtime& rt, const TrackedText& text, size_t left, size_t right, const TrackedText& fill) {
  rt.check_size(std::max(left, right));
  rt.check_size(text.size() + (left + right) * fill.size());
  rt.work((left + right) * fill.size());
  TrackedText out;
  for (size_t i = 0; i < left; ++i) out.append(fill);
  out.append(text);
  for (size_t i = 0; i < right; ++i) out.append(fill);
  return out;
}

TrackedText center(Runtime& rt, const TrackedText& text, int64_t width, const TrackedText& fill) {
  const int64_t length = static_cast<int64_t>(count_code_points(text.view()));
  if (width <= length) return text;
  const int64_t missing = width - length;
  const int64_t left = missing / 2 + (missing & width & 1);  // as CPython rounds it
  return pad(rt, text, static_cast<size_t>(left), static_cast<size_t>(missing - left), fill);
}

Value list_of_parts(Runtime& rt, const String& text, const std::vector<ByteSpan>& parts) {
  const size_t beside = parts.capacity() * sizeof(ByteSpan) + parts.size() * sizeof(Value);
  rt.heap.hold(beside);
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const ByteSpan& part : parts) items.push_back(substring(rt, text, part.begin, part.end));
  rt.heap.let_go(beside);
  return rt.heap.list(std::move(items));
}

}  // namespace qwench::jinja
