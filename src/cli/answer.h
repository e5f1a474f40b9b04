#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/answer_printer.h"
#include "qwench/engine.h"
#include "text/chat_template.h"

namespace qwench::cli {

/// Answers one request and writes the text to stdout as it comes, up to the end of its last line.
Result stream_answer(Engine& engine, const Request& request, AnswerStyle style, const std::stop_token& stop);

/// Where a constraint on the answer to rendered messages begins.
Constraint::Reasoning constraint_begins(const Engine& engine, const std::vector<TokenId>& prompt,
                                        const ChatTemplateInput& input,
                                        const std::optional<std::string>& template_name);

/// How answers appear on this standard output.
AnswerStyle answer_style(bool hide_reasoning);

}  // namespace qwench::cli
