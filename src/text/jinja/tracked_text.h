#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/byte_span.h"

namespace qwench::jinja {

/// UTF-8 text that knows, byte for byte, whether it came from the template or from the input (the messages
/// and other variables). The input's bytes are kept as sorted, disjoint, non-touching spans, so that text of
/// one origin costs nothing extra. Where an operation cannot follow single bytes it must mark them as input.
class TrackedText {
 public:
  TrackedText() = default;
  static TrackedText of_template(std::string text);
  static TrackedText of_input(std::string text);

  const std::string& str() const { return text_; }
  std::string_view view() const { return text_; }
  size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  const std::vector<ByteSpan>& input_spans() const { return input_; }
  bool has_input() const { return !input_.empty(); }
  bool all_input() const { return input_.size() == 1 && input_[0].end - input_[0].begin == text_.size(); }
  bool is_input(size_t byte) const;

  void append(std::string_view text, bool from_input);
  void append(const TrackedText& other) { append(other, 0, other.size()); }
  void append(const TrackedText& other, size_t begin, size_t end);
  TrackedText slice(size_t begin, size_t end) const;
  void mark_all_input();
  void reserve(size_t bytes) { text_.reserve(bytes); }

  /// The text, moved out.
  std::string take() && { return std::move(text_); }

  friend TrackedText operator+(const TrackedText& a, const TrackedText& b) {
    TrackedText sum = a;
    sum.append(b);
    return sum;
  }

 private:
  void add_input(size_t begin, size_t end);

  std::string text_;
  std::vector<ByteSpan> input_;
};

/// Answers is_input() for rising positions in constant time each.
class OriginReader {
 public:
  explicit OriginReader(const TrackedText& text) : spans_(text.input_spans()) {}
  bool is_input(size_t byte) {
    while (next_ < spans_.size() && spans_[next_].end <= byte) ++next_;
    return next_ < spans_.size() && spans_[next_].begin <= byte;
  }

 private:
  const std::vector<ByteSpan>& spans_;
  size_t next_ = 0;
};

}  // namespace qwench::jinja
