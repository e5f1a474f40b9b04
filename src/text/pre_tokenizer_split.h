#pragma once

#include <string_view>
#include <vector>

#include "text/byte_span.h"
#include "text/pre_tokenizer.h"
#include "text/unicode_classes.h"

namespace qwench {

/// What becomes of the matches of a pattern between pieces.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

SplitBehavior split_behavior(std::string_view name,
                             const std::string& where);  ///< "Removed", "Isolated", ...

/// Cuts one piece at `matches` (of the whole text, in order, inside the piece) and appends what remains. With
/// `invert` the matches and what lies between them change places.
void cut_piece(ByteSpan piece, const std::vector<ByteSpan>& matches, SplitBehavior behavior, bool invert,
               std::vector<ByteSpan>& out);

/// Cuts all pieces at the characters for which test(character, properties) holds, each a match of its own.
template <typename Test>
void split_at_characters(PreTokenizedText& text, SplitBehavior behavior, Test&& test) {
  const auto& properties = unicode::property_table();
  text.buffer.clear();
  std::vector<ByteSpan> matches;
  for (const ByteSpan piece : text.pieces) {
    matches.clear();
    const char* const begin = text.text.data();
    for (const char* p = begin + piece.begin; p != begin + piece.end;) {
      const auto from = static_cast<size_t>(p - begin);
      const char32_t c = unicode::next_char(p);
      if (test(c, properties[c])) matches.push_back({from, static_cast<size_t>(p - begin)});
    }
    if (matches.empty())
      text.buffer.push_back(piece);
    else
      cut_piece(piece, matches, behavior, false, text.buffer);
  }
  text.pieces.swap(text.buffer);
}

}  // namespace qwench
