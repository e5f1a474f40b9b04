#pragma once

#include <stop_token>

#include "cli/answer_printer.h"
#include "qwench/engine.h"

namespace qwench::cli {

/// Answers one request and writes the text to stdout as it comes, up to the end of its last line.
Result stream_answer(Engine& engine, const Request& request, AnswerStyle style, const std::stop_token& stop);

/// How answers appear on this standard output.
AnswerStyle answer_style(bool hide_reasoning);

}  // namespace qwench::cli
