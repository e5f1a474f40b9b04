#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qwench {

/// GPT-2's alphabet of bytes (Radford et al. 2019): each byte has a visible character; printable Latin-1
/// stands for itself, the other 68 bytes are U+0100 and up.
void append_byte_alphabet(std::string& out, std::string_view bytes);
std::string to_byte_alphabet(std::string_view bytes);

/// The bytes that `text` stands for, or nothing when a character of it is not of the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace qwench
