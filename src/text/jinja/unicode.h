#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qwench::jinja {

// Character classes and case mappings as Python's str methods define them (Unicode's UnicodeData.txt and
// SpecialCasing.txt). The data is utf8proc's, one Unicode version newer than Python 3.11's.

bool is_space(char32_t c);    ///< str.isspace, and the white space of re's \s
bool is_alpha(char32_t c);    ///< categories L*
bool is_decimal(char32_t c);  ///< category Nd
bool is_digit(char32_t c);    ///< decimals, superscripts, circled digits
bool is_numeric(char32_t c);  ///< categories N*, and the CJK numerals
bool is_alnum(char32_t c);
inline bool is_word(char32_t c) { return is_alnum(c) || c == '_'; }  ///< \w of regular expressions
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);      ///< category Lt
bool is_printable(char32_t c);  ///< what repr() leaves as it is
bool is_cased(char32_t c);
bool is_case_ignorable(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
int decimal_value(char32_t c);  ///< 0 to 9, or -1

void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);  ///< without the rule of the final sigma
void append_title(std::string& out, char32_t c);
void append_folded(std::string& out, char32_t c);

bool has_only_case(std::string_view text, bool upper);  ///< str.isupper or str.islower

size_t count_code_points(std::string_view text);
bool is_ascii(std::string_view text);

/// Bytes where the code points of `text` begin, and its end: count + 1 entries.
std::vector<size_t> code_point_offsets(std::string_view text);

/// The byte where code point `index` begins; text.size() when there are not so many.
size_t byte_of_code_point(std::string_view text, size_t index);

}  // namespace qwench::jinja
