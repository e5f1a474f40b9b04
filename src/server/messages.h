#pragma once

#include "server/request_body.h"

namespace qwench::server {

/// `messages`, `tools`, `chat_template_kwargs`, `add_generation_prompt` and `continue_final_message` of a
/// body that its schema has been checked against. What a schema does not say is checked here: which role may
/// have what. Throws ApiError (400).
ChatPrompt read_chat_prompt(const Json& body);

/// That each tool_call_id, where one is given, is of a call that an earlier message made, as in OpenAI's API.
/// Behind a call without an id nothing can be said. Throws ApiError (400).
void check_tool_call_ids(const Json& messages);

}  // namespace qwench::server
