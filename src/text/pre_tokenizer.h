#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "text/byte_span.h"

namespace qwench {

/// A text on its way through the pre-tokenizers: pieces of `text` in order, with gaps where something was
/// removed.
struct PreTokenizedText {
  std::string_view text;         ///< well-formed UTF-8
  std::vector<ByteSpan> pieces;  ///< none empty
  bool at_start = true;          ///< text[0] comes from the first character of the whole input
  bool bytes_mapped = true;      ///< false: a ByteLevel step at the end has left its mapping to the model

  std::string storage;           ///< holds `text` once a step has changed it
  std::vector<ByteSpan> buffer;  ///< of the steps

  /// Begins with one piece, the whole of `whole`; the buffers keep their memory.
  void reset(std::string_view whole, bool starts_the_input);
  std::string_view piece(const ByteSpan& span) const {
    return text.substr(span.begin, span.end - span.begin);
  }
};

/// One pre-tokenizer of a tokenizer.json. Immutable and thread-safe.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(PreTokenizedText& text) const = 0;

  /// Null for JSON null. `model_takes_bytes`: a ByteLevel step that comes last may leave its mapping of bytes
  /// to characters to the model. Throws Error (malformed, unsupported), which names an unknown type and those
  /// supported.
  static std::shared_ptr<const PreTokenizer> from_json(const Json& json, const std::string& where,
                                                       bool model_takes_bytes);
};

}  // namespace qwench
