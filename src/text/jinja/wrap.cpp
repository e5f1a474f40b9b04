#include "text/jinja/wrap.h"

#include <algorithm>

#include "core/utf8.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

bool is_wrap_space(char32_t c) { return c == ' ' || (c >= 9 && c <= 13); }
bool is_letter(char32_t c) { return (is_alnum(c) || c == '_') && !is_decimal(c); }
bool is_word_or_mark(char32_t c) {
  return is_word(c) || c == '!' || c == '"' || c == '\'' || c == '&' || c == '.' || c == ',' || c == '?';
}

/// A piece of the line that is not broken, [begin, end) in code points.
struct Chunk {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

class Wrapper {
 public:
  Wrapper(const TrackedText& line, const WrapOptions& options)
      : line_(line),
        text_(to_utf32(line.view())),
        offsets_(code_point_offsets(line.view())),
        options_(options) {}

  TrackedText run(Runtime& rt, const TrackedText& separator) {
    split();
    std::reverse(chunks_.begin(), chunks_.end());
    TrackedText out;
    bool first = true;
    while (!chunks_.empty()) {
      rt.step();
      if (!first && is_blank(chunks_.back())) chunks_.pop_back();
      std::vector<Chunk> row = fill_row();
      if (!row.empty() && is_blank(row.back())) row.pop_back();
      if (row.empty()) continue;
      if (!first) out.append(separator);
      first = false;
      out.append(line_, offsets_[row.front().begin], offsets_[row.back().end]);
      rt.check_size(out.size());
    }
    return out;
  }

 private:
  std::vector<Chunk> fill_row() {
    std::vector<Chunk> row;
    const size_t width = static_cast<size_t>(options_.width);
    size_t length = 0;
    while (!chunks_.empty() && length + chunks_.back().size() <= width) {
      row.push_back(chunks_.back());
      length += chunks_.back().size();
      chunks_.pop_back();
    }
    if (chunks_.empty() || chunks_.back().size() <= width) return row;
    Chunk& chunk = chunks_.back();
    if (options_.break_long_words) {
      if (options_.fractional) fail("slice indices must be integers or None or have an __index__ method");
      size_t taken = width - length;
      if (options_.break_on_hyphens && chunk.size() > taken) {
        // Rather after a hyphen that is not among the first characters.
        size_t hyphen = taken;
        while (hyphen > 0 && text_[chunk.begin + hyphen - 1] != '-') --hyphen;
        const auto word = text_.begin() + static_cast<std::ptrdiff_t>(chunk.begin);
        if (hyphen > 1 && std::any_of(word, word + static_cast<std::ptrdiff_t>(hyphen - 1),
                                      [](char32_t c) { return c != '-'; })) {
          taken = hyphen;
        }
      }
      row.push_back({chunk.begin, chunk.begin + taken});
      chunk.begin += taken;
    } else if (row.empty()) {
      row.push_back(chunk);
      chunks_.pop_back();
    }
    return row;
  }

  bool is_blank(const Chunk& chunk) const {
    for (size_t i = chunk.begin; i < chunk.end; ++i) {
      if (!is_space(text_[i])) return false;
    }
    return true;
  }

  char32_t at(size_t i) const { return i < text_.size() ? text_[i] : U'\0'; }

  /// "--" and more between words, from i: where it ends, else i.
  size_t dash_end(size_t i) const {
    size_t end = i;
    while (at(end) == '-') ++end;
    return end - i >= 2 && end < text_.size() && is_word(at(end)) ? end : i;
  }

  void split() {
    size_t begin = 0;
    while (begin < text_.size()) {
      const size_t end = options_.break_on_hyphens ? chunk_end(begin) : simple_end(begin);
      chunks_.push_back({begin, end});
      begin = end;
    }
  }

  size_t simple_end(size_t begin) const {
    size_t end = begin;
    while (end < text_.size() && is_wrap_space(text_[end]) == is_wrap_space(text_[begin])) ++end;
    return end;
  }

  size_t chunk_end(size_t begin) const {
    if (is_wrap_space(text_[begin])) return simple_end(begin);
    if (begin > 0 && is_word_or_mark(text_[begin - 1])) {
      const size_t end = dash_end(begin);
      if (end != begin) return end;
    }
    for (size_t end = begin + 1;; ++end) {
      // A hyphen inside a word: after two letters, or a letter, a hyphen and one more; before two letters.
      if (at(end) == '-' && end < text_.size()) {
        const bool two = end >= 2 && is_letter(text_[end - 1]) && is_letter(text_[end - 2]);
        const bool dashed =
            end >= 3 && is_word_or_mark(text_[end - 1]) && text_[end - 2] == '-' && is_letter(text_[end - 3]);
        const size_t second = at(end + 2) == '-' ? end + 3 : end + 2;
        if ((two || dashed) && is_letter(at(end + 1)) && is_letter(at(second))) return end + 1;
      }
      if (end >= text_.size() || is_wrap_space(text_[end])) return end;
      if (is_word_or_mark(text_[end - 1]) && dash_end(end) != end) return end;
    }
  }

  const TrackedText& line_;
  std::u32string text_;
  std::vector<size_t> offsets_;
  const WrapOptions& options_;
  std::vector<Chunk> chunks_;
};

}  // namespace

TrackedText wrap(Runtime& rt, const TrackedText& line, const WrapOptions& options,
                 const TrackedText& separator) {
  rt.work(line.size() * 16);
  return Wrapper(line, options).run(rt, separator);
}

}  // namespace qwench::jinja
