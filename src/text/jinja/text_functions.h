#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/runtime.h"

namespace qwench::jinja {

// What Python's str methods and Jinja's text filters share. Every character of a result has the origin of the
// character that it was made from.

enum class LetterCase : uint8_t { upper, lower, title, capitalize, swap, fold };
TrackedText change_case(const TrackedText& text, LetterCase target);

/// The part of `text` that str.strip leaves; `characters` null: white space.
ByteSpan strip(std::string_view text, const std::string_view* characters, bool left, bool right);

/// str.split and str.rsplit; `max` below 0: no limit. The parts are in order; each is a step, and they fail
/// where their memory would pass the limit.
std::vector<ByteSpan> split_spaces(Runtime& rt, std::string_view text, int64_t max);
std::vector<ByteSpan> split_spaces_right(Runtime& rt, std::string_view text, int64_t max);
std::vector<ByteSpan> split_on(Runtime& rt, std::string_view text, std::string_view separator, int64_t max);
std::vector<ByteSpan> split_on_right(Runtime& rt, std::string_view text, std::string_view separator,
                                     int64_t max);
/// str.splitlines: at all of Python's line boundaries.
std::vector<ByteSpan> split_lines(Runtime& rt, std::string_view text, bool keep_ends);

TrackedText replace(Runtime& rt, const TrackedText& text, std::string_view old, const TrackedText& with,
                    int64_t max);

/// `missing` fill characters, then text, then as many as are left.
TrackedText pad(Runtime& rt, const TrackedText& text, size_t left, size_t right, const TrackedText& fill);
TrackedText center(Runtime& rt, const TrackedText& text, int64_t width, const TrackedText& fill);

/// A list of parts of a string, as strings.
Value list_of_parts(Runtime& rt, const String& text, const std::vector<ByteSpan>& parts);

}  // namespace qwench::jinja
