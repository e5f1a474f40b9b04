#pragma once

#include <cstring>
#include <string_view>

#include "text/jinja/runtime.h"

namespace qwench::jinja {

/// The first `needle` at or after byte `from`, or npos; in linear time whatever the texts (memmem, not
/// string_view::find).
inline size_t find_text(Runtime& rt, std::string_view text, std::string_view needle, size_t from = 0) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  const size_t at = found == nullptr ? std::string_view::npos
                                     : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  rt.work(((found == nullptr ? text.size() : at) - from) * 2 + needle.size() * 8);
  return at;
}

/// The last `needle` that ends at or before byte `to`, or npos. Its worst case is the product of the lengths,
/// which the budget of steps pays for.
inline size_t find_last_text(Runtime& rt, std::string_view text, std::string_view needle, size_t to) {
  text = text.substr(0, to);
  if (needle.size() > text.size()) return std::string_view::npos;
  rt.work(text.size());
  rt.step((text.size() - needle.size()) * needle.size() / 4096);
  return text.rfind(needle);
}

}  // namespace qwench::jinja
