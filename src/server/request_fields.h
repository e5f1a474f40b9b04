#pragma once

#include "core/json.h"

namespace qwench::server {

inline constexpr int kMaxMessages = 2048;
inline constexpr int kMaxPrompts = 2048;
inline constexpr int kMaxStopStrings = 16;
inline constexpr int kMaxTopLogprobs = 20;

// What the body of each route may hold, as JSON Schema with descriptions: the parser checks bodies against
// these, and /openapi.json shows them. Fields of OpenAI's API that are not supported are there with the type
// null and the reason; all others that are not named are refused.
const Json& chat_fields();
const Json& translated_chat_fields();  ///< of a chat body that was made of another API's: names may be longer
const Json& completion_fields();
const Json& tokenize_fields();
const Json& detokenize_fields();
const Json& apply_template_fields();

}  // namespace qwench::server
