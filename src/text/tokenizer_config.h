#pragma once

#include <string>

#include "core/json.h"
#include "text/tokenizer_parts.h"

namespace qwench {

/// Takes from a tokenizer_config.json: bos, eos, pad and unk token; added tokens (added_tokens_decoder) that
/// tokenizer.json lacks; add_bos_token and add_eos_token, which Llama's tokenizer class lets overrule the
/// post-processor. Throws Error (malformed) that begins with `what`.
void apply_tokenizer_config(const Json& config, const std::string& what, TokenizerParts& parts);

}  // namespace qwench
