#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace qwench::jinja {

/// The digits of |value| in the style of C's %e, %f, %g (or E, F, G): without sign, whatever the locale.
std::string format_magnitude(double value, char style, int precision, bool alternate);

/// A format specification of Python: [[fill]align][sign][#][0][width][grouping][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  ///< one of < > ^ =, or none given
  char sign = '\0';   ///< one of + - and space, or none given
  bool alternate = false;
  int64_t width = -1;
  char grouping = '\0';  ///< comma or underscore
  int64_t precision = -1;
  char type = '\0';

  /// Fails on a broken one.
  static FormatSpec parse(std::string_view text);
};

/// Python's format() of a number (int, bool, float) with a specification.
std::string format_number(const Value& number, const FormatSpec& spec);

/// sign + prefix + digits padded to the specification's width.
std::string pad_number(const std::string& sign, const std::string& digits, const FormatSpec& spec);

}  // namespace qwench::jinja
