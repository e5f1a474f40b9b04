#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/decoder.h"
#include "text/tokenizer_pattern.h"

namespace qwench::decoder {

using Sink = std::unique_ptr<DecoderSink>;

/// Bytes of GPT-2's alphabet, tokens joined; other tokens give their own bytes. Ill-formed parts become
/// U+FFFD as soon as no further byte can complete them.
Sink byte_level(Sink next);

/// "<0xE4>" tokens in a row become the characters they spell, or one U+FFFD each when they spell none. The
/// row is held back until it ends.
Sink byte_fallback(Sink next);

Sink fuse(Sink next);                       ///< all tokens become one
Sink join(std::string between, Sink next);  ///< the same with a text in between
Sink replace(TokenizerPattern pattern, std::string by, Sink next);
Sink strip(char32_t what, size_t start, size_t stop,
           Sink next);  ///< up to so many characters off a token's ends
Sink metaspace(char32_t mark, bool drops_first,
               Sink next);                        ///< marks become spaces; the first token's vanish
Sink word_suffix(std::string suffix, Sink next);  ///< the suffix becomes a space, in the last token nothing

}  // namespace qwench::decoder
