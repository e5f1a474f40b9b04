#pragma once

#include <optional>
#include <vector>

#include "core/json.h"
#include "qwench/request.h"
#include "text/tokenizer.h"

namespace qwench::server {

/// {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}, ...], "refusal": null}
Json chat_logprobs(const std::vector<TokenLogprob>& logprobs, const Tokenizer& tokenizer);

/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, parallel lists. `first` is a token before
/// them all whose log-probability is not known (null). `offset` is the place of the first in the text, in
/// characters, and moves to behind the last.
Json completion_logprobs(const std::vector<TokenLogprob>& logprobs, std::optional<TokenId> first,
                         const Tokenizer& tokenizer, int& offset);

/// Appends the lists of `more` to those of `into`, which may be null.
void append_logprobs(Json& into, const Json& more);

}  // namespace qwench::server
