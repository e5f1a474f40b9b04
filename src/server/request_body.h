#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/json.h"
#include "qwench/request.h"
#include "server/answer_format.h"
#include "server/tool_use.h"
#include "text/chat_template.h"

namespace qwench::server {

/// Messages as the chat template gets them, and how their prompt ends.
struct ChatPrompt {
  ChatTemplateInput input;
  bool continue_final_message = false;
  /// The field that asks for that, by which what stands in its way is said.
  const char* continues_by = "continue_final_message";
};

using TextPrompt = std::variant<std::string, std::vector<TokenId>>;

/// A body of a route that runs the model, checked as far as it can be without the model.
struct GenerationBody {
  bool chat = false;  ///< messages through the chat template, or prompts as they are
  const char* id_prefix = "";
  AnswerMaker make_answer;
  /// Where given, this is the whole answer, and the model does not run.
  std::function<Json(const AnswerHead&)> at_once;
  std::string model;  ///< empty: the served one
  ChatPrompt messages;
  std::vector<TextPrompt> prompts;
  ToolUse tools;
  Request settings;  ///< of each prompt; its ids are still empty
  bool echo = false;
  bool stream = false;
  bool include_usage = false;  ///< in the stream
};

struct TokenizeBody {
  std::string model;
  std::optional<std::string> text;  ///< else messages
  ChatPrompt messages;
  bool add_special_tokens = true;
  bool return_token_strs = false;
};

struct DetokenizeBody {
  std::string model;
  std::vector<TokenId> tokens;
};

struct ApplyTemplateBody {
  std::string model;
  ChatPrompt messages;
};

// Each throws ApiError (400) that names the field.
Json parse_body(const std::string& body);  ///< one JSON object
GenerationBody read_chat_body(const Json& body);
GenerationBody read_chat_body(const Json& body, const Json& fields);  ///< checked against these
GenerationBody read_completion_body(const Json& body);
/// A text, ids, or an array of those, that a schema has been checked for.
std::vector<TextPrompt> read_prompts(const Json& prompt);
TokenizeBody read_tokenize_body(const Json& body);
DetokenizeBody read_detokenize_body(const Json& body);
ApplyTemplateBody read_apply_template_body(const Json& body);

}  // namespace qwench::server
