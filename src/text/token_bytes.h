#pragma once

#include <string>

#include "text/tokenizer.h"

namespace qwench {

/// The bytes that a token stands for inside a text; half a character for some.
std::string token_bytes(const Tokenizer& tokenizer, TokenId id);

}  // namespace qwench
