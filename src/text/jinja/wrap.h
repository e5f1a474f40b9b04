#pragma once

#include "text/jinja/runtime.h"

namespace qwench::jinja {

struct WrapOptions {
  int64_t width = 79;
  bool fractional = false;  ///< the width had a fraction: no word can be cut there
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

/// Python's textwrap.wrap of one line, its lines joined by `separator`.
TrackedText wrap(Runtime& rt, const TrackedText& line, const WrapOptions& options,
                 const TrackedText& separator);

}  // namespace qwench::jinja
