#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace qwench {

/// A text on its way through the normalizers.
struct NormalizedText {
  std::string text;  ///< well-formed UTF-8
  std::vector<uint8_t>
      trusted;  ///< by byte, whether all that it came from may hold added tokens; empty: not followed
  bool at_start = true;  ///< the first character comes from the first one of the whole input
};

/// One normalizer of a tokenizer.json. Immutable and thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;
  /// A cheap test that may say false for a text that would not change.
  virtual bool leaves_as_is(std::string_view) const { return false; }

  std::string normalized(std::string_view text) const;

  /// Null for JSON null. Throws Error (malformed, unsupported), which names an unknown type and those
  /// supported.
  static std::shared_ptr<const Normalizer> from_json(const Json& json, const std::string& where);
};

}  // namespace qwench
