#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qwench::jinja {

/// The value of the inside of a string literal: Python's unicode-escape decoding of its ASCII form (so that a
/// backslash before a character beyond ASCII leaves that character's own escape in the text, as in Jinja).
/// Throws Failure (syntax) on a broken escape.
std::string unescape(std::string_view literal);

/// The character of a Unicode name, for \N{...}. Knows the blocks that templates use: Latin, Greek,
/// punctuation, arrows, mathematics, shapes, symbols and emoji.
std::optional<char32_t> character_by_name(std::string_view name);

}  // namespace qwench::jinja
