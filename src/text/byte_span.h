#pragma once

#include <cstddef>

namespace qwench {

/// Bytes [begin, end) of a text.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;

  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

}  // namespace qwench
