#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qwench {

/// Json keeps whole numbers of 64 bits and doubles. Refuses JSON text in which a JSON Schema says a larger
/// whole number that a double would round, where rounding would change what is valid: not as a bound that no
/// generated number comes near, nor in annotations. Of an object, only the members `fields` are looked at,
/// all where there are none. Throws Error (invalid_argument) that names the keyword and the number. What is
/// not valid JSON passes.
void refuse_rounded_integers(std::string_view text, const std::string& what,
                             const std::vector<std::string>& fields = {});

}  // namespace qwench
