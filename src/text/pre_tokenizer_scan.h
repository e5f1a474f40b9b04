#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/byte_span.h"

namespace qwench {

/// Patterns of published tokenizers that are cut by hand-written code, which is several times faster than the
/// regular expression and gives the same pieces (tested against it on random text).
enum class KnownPattern {
  gpt2,    ///< GPT-2, and every ByteLevel pre-tokenizer with use_regex
  qwen2,   ///< Qwen2, Qwen2.5, Qwen3: digits one by one
  llama3,  ///< Llama 3: digits in groups of up to three
};

/// The regular expression of a known pattern.
std::string_view pattern_text(KnownPattern pattern);
std::optional<KnownPattern> known_pattern(std::string_view regex);

/// Appends the pieces of text[begin, end) (well-formed UTF-8); they lie next to each other and leave nothing
/// out.
void scan_pieces(KnownPattern pattern, std::string_view text, ByteSpan range, std::vector<ByteSpan>& pieces);

}  // namespace qwench
