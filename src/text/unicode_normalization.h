#pragma once

#include <string>
#include <string_view>

#include "text/byte_span.h"

namespace qwench::unicode {

enum class NormalizationForm { nfc, nfd, nfkc, nfkd };

/// The first part of text[from, ...) that normalization may change: it begins at a character whose change
/// cannot reach back further, and ends before the next such one. Empty, at the end of `text`, when there is
/// none.
ByteSpan next_unstable_part(NormalizationForm form, std::string_view text, size_t from);

/// Appends the normalized form of `part`, which next_unstable_part gave (Unicode Standard Annex 15, with the
/// data for decomposition and composition from utf8proc). n log n in the number of marks that follow one
/// another.
void append_normalized(NormalizationForm form, std::string_view part, std::string& out);

}  // namespace qwench::unicode
