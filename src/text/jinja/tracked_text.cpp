#include "text/jinja/tracked_text.h"

#include <algorithm>

namespace qwench::jinja {

TrackedText TrackedText::of_template(std::string text) {
  TrackedText result;
  result.text_ = std::move(text);
  return result;
}

TrackedText TrackedText::of_input(std::string text) {
  TrackedText result = of_template(std::move(text));
  result.mark_all_input();
  return result;
}

bool TrackedText::is_input(size_t byte) const {
  const auto after = std::upper_bound(input_.begin(), input_.end(), byte,
                                      [](size_t at, const ByteSpan& span) { return at < span.begin; });
  return after != input_.begin() && byte < std::prev(after)->end;
}

void TrackedText::add_input(size_t begin, size_t end) {
  if (begin == end) return;
  if (!input_.empty() && input_.back().end == begin) {
    input_.back().end = end;
  } else {
    input_.push_back({begin, end});
  }
}

void TrackedText::append(std::string_view text, bool from_input) {
  const size_t begin = text_.size();
  text_.append(text);
  if (from_input) add_input(begin, text_.size());
}

void TrackedText::append(const TrackedText& other, size_t begin, size_t end) {
  if (&other == this) {
    const TrackedText copy = other;  // NOLINT(performance-unnecessary-copy-initialization): it is this
    append(copy, begin, end);
    return;
  }
  const size_t base = text_.size();
  text_.append(other.text_, begin, end - begin);
  auto span = std::lower_bound(other.input_.begin(), other.input_.end(), begin,
                               [](const ByteSpan& s, size_t at) { return s.end <= at; });
  for (; span != other.input_.end() && span->begin < end; ++span) {
    add_input(base + std::max(span->begin, begin) - begin, base + std::min(span->end, end) - begin);
  }
}

TrackedText TrackedText::slice(size_t begin, size_t end) const {
  TrackedText result;
  result.append(*this, begin, end);
  return result;
}

void TrackedText::mark_all_input() {
  input_.clear();
  add_input(0, text_.size());
}

}  // namespace qwench::jinja
