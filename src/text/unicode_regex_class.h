#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/unicode_classes.h"

namespace qwench::unicode {

/// A pattern being read, with errors that show where.
class PatternReader {
 public:
  PatternReader(std::string_view pattern, const std::string& what) : pattern_(pattern), what_(what) {}

  bool at_end() const { return place_ >= pattern_.size(); }
  char peek(size_t ahead = 0) const {
    return place_ + ahead < pattern_.size() ? pattern_[place_ + ahead] : '\0';
  }
  bool accept(std::string_view text);  ///< moves behind `text` when it comes next
  char32_t take();                     ///< the next character
  size_t place() const { return place_; }
  void go_to(size_t place) { place_ = place; }
  std::string_view rest() const { return pattern_.substr(place_); }

  [[noreturn]] void fail(std::string_view problem) const;           ///< ErrorKind::malformed
  [[noreturn]] void fail_unsupported(std::string_view what) const;  ///< ErrorKind::unsupported

 private:
  std::string_view pattern_;
  const std::string& what_;
  size_t place_ = 0;
};

/// What an escape stands for: a set (\s, \p{L}) or a character (\n, \x41).
struct Escape {
  std::optional<CodePointSet> set;
  char32_t code = 0;
};

/// An escape that means the same inside and outside of brackets; the reader is behind the backslash.
Escape read_escape(PatternReader& reader);

/// A class in brackets; the reader is behind the opening one and moves behind the closing one.
CodePointSet read_class(PatternReader& reader, bool ignore_case, int depth = 0);

}  // namespace qwench::unicode
