#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/reasoning.h"
#include "server/request_body.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/tool_calls.h"

namespace qwench::server {

/// How the answer to a chat begins, given its prompt: a message that goes on has begun already.
ReasoningStart::Kind reasoning_of(const ChatPrompt& messages, const std::string& prompt);

/// The text side of a loaded model; the tokenizer may be null, and so may the templates.
struct PromptText {
  std::shared_ptr<const Tokenizer> tokenizer;
  const ChatTemplates* templates = nullptr;

  /// Messages through the model's template, with their tools where it shows any. With continue_final_message
  /// the text ends behind the last message's content. Throws ApiError (400) where there is no template, the
  /// template refuses, or it does not show the tools, or the last message as it is.
  RenderedPrompt render(const ChatPrompt& prompt) const;
  std::vector<TokenId> encode(const RenderedPrompt& prompt) const;
  /// Special-token text is recognised. Throws ApiError (400) without a tokenizer.
  std::vector<TokenId> encode(const std::string& text, bool add_special = true) const;
  /// How the model writes calls. Throws as render() does.
  ToolSyntax tool_syntax() const;
  const Tokenizer& required() const;
};

}  // namespace qwench::server
