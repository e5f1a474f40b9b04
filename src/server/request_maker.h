#pragma once

#include <string>
#include <vector>

#include "qwench/engine.h"
#include "server/generation_task.h"
#include "server/http_message.h"
#include "server/json_log.h"
#include "server/prompt_text.h"
#include "server/request_body.h"
#include "server/tool_grammars.h"

namespace qwench::server {

struct ServiceOptions;

PromptText prompt_text(const Engine& engine);

/// Makes of a checked body what the engine is asked, and what is kept for its answer. Thread-safe.
class RequestMaker {
 public:
  /// Both must outlive it.
  RequestMaker(const ServiceOptions& options, JsonLog& log) : options_(options), log_(log) {}

  /// All but its prompts, streams, headers and exchange.
  GenerationJob make_job(const Engine& engine, const HttpRequest& request, const GenerationBody& body) const;
  /// A request for each prompt, which `job` is told of. Throws ApiError (400).
  std::vector<Request> make_requests(const Engine& engine, const GenerationBody& body,
                                     GenerationJob& job) const;

 private:
  /// Sets up a request whose answer may, or must, call tools.
  void look_for_calls(const ToolUse& use, const PromptText& text, AnswerHead& head, Request& request) const;
  void log_prompt(const std::string& request_id, const std::string& text) const;

  const ServiceOptions& options_;
  JsonLog& log_;
  mutable ToolGrammars tool_grammars_;
};

}  // namespace qwench::server
