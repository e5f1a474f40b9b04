#pragma once

#include <string>
#include <string_view>

namespace qwench {

/// A name or value from an untrusted file, fit for an error message: in quotes, valid UTF-8, control
/// characters escaped, cut after 100 bytes.
std::string printable(std::string_view text);

}  // namespace qwench
