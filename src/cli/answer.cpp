#include "cli/answer.h"

#include <algorithm>
#include <utility>

#include "cli/terminal.h"
#include "text/tokenizer.h"

namespace qwench::cli {
namespace {

// "<think>" and the whitespace after it are at most a few tokens, whatever the vocabulary.
constexpr size_t kTail = 16;

std::string end_of(const Engine& engine, const std::vector<TokenId>& ids) {
  const auto tokenizer = engine.tokenizer();
  if (tokenizer == nullptr) return "";
  const std::span<const TokenId> all(ids);
  return tokenizer->decode(all.last(std::min(kTail, all.size())), false);
}

}  // namespace

Constraint::Reasoning constraint_begins(const Engine& engine, const std::vector<TokenId>& prompt,
                                        const ChatTemplateInput& input,
                                        const std::optional<std::string>& template_name) {
  const bool tools = input.tools.is_array() && !input.tools.empty();
  return reasoning_before_constraint(
      end_of(engine, prompt), engine.chat_templates()->select(template_name, tools).source(), input.kwargs);
}

AnswerStyle answer_style(bool hide_reasoning) {
  return {
      .terminal = is_terminal(stdout), .colours = shows_colours(stdout), .hide_reasoning = hide_reasoning};
}

Result stream_answer(Engine& engine, const Request& request, AnswerStyle style, const std::stop_token& stop) {
  AnswerPrinter printer(style, reasoning_start(opens_reasoning(end_of(engine, request.ids)),
                                               request.constraint, engine.tokenizer().get()));
  const auto show = [&](const Delta& delta) {
    const std::span<const TokenId> id(&delta.id, delta.id < 0 ? 0 : 1);
    print(printer.push(delta.text, id));
  };
  std::vector<Result> results = engine.generate(std::span(&request, 1), show, stop);
  print(printer.finish());
  if (!printer.ends_line()) print("\n");
  return std::move(results.front());
}

}  // namespace qwench::cli
