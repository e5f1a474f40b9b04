#include "server/prompt_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api_error.h"

namespace qwench::server {
namespace {

constexpr std::string_view kWhitespace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhitespace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhitespace) - begin + 1);
}

/// No byte of text[begin, end) came from the template.
bool from_messages(const RenderedPrompt& prompt, size_t begin, size_t end) {
  return std::none_of(prompt.trusted.begin(), prompt.trusted.end(),
                      [&](const ByteSpan& span) { return span.begin < end && begin < span.end; });
}

[[noreturn]] void refuse_continuation(const ChatPrompt& prompt, const char* sentence) {
  throw ApiError(400, fmt::format("{}: {}", prompt.continues_by, sentence), prompt.continues_by);
}

/// Cuts what the template puts behind the last message's content, so that its turn stays open.
void cut_behind(RenderedPrompt& prompt, const ChatPrompt& asked) {
  const Json& last_message = asked.input.messages.back();
  if (const auto calls = last_message.find("tool_calls"); calls != last_message.end() && !calls->empty())
    refuse_continuation(asked,
                        "the last message calls tools, so there is nothing to continue: what the tools "
                        "gave must follow it");
  const std::string content = last_message["content"].get<std::string>();
  const std::string_view core = trimmed(content);
  if (core.empty())
    refuse_continuation(asked, "the last message has no text that could be continued; leave it out");
  // The template may say the same elsewhere. The content's last byte is the message's own, but where the
  // template writes reasoning's tags anew; then some byte is.
  const auto last_where = [&](const auto& own) {
    size_t at = prompt.text.rfind(core);
    while (at != std::string::npos && !own(at))
      at = at == 0 ? std::string::npos : prompt.text.rfind(core, at - 1);
    return at;
  };
  size_t at = last_where(
      [&](size_t begin) { return from_messages(prompt, begin + core.size() - 1, begin + core.size()); });
  if (at == std::string::npos) {
    at = last_where([&](size_t begin) {
      for (size_t i = begin; i < begin + core.size(); ++i)
        if (from_messages(prompt, i, i + 1)) return true;
      return false;
    });
  }
  if (at == std::string::npos)
    refuse_continuation(asked,
                        "the model's chat template does not show the last message as it is, so it "
                        "cannot be continued");
  // Templates may trim a message; where they did not, its whitespace is part of what goes on.
  const size_t skipped = static_cast<size_t>(core.data() - content.data());
  const std::string_view tail = std::string_view(content).substr(skipped + core.size());
  size_t end = at + core.size();
  if (std::string_view(prompt.text).substr(end).starts_with(tail) &&
      from_messages(prompt, end, end + tail.size()))
    end += tail.size();
  prompt.text.resize(end);
  std::erase_if(prompt.trusted, [&](const ByteSpan& span) { return span.begin >= end; });
  for (ByteSpan& span : prompt.trusted) span.end = std::min(span.end, end);
}

ToolSyntax syntax_of(const ChatTemplate& chat_template) {
  if (const auto syntax = tool_syntax(chat_template)) return *syntax;
  throw ApiError(400,
                 "tools: the model's chat template does not show tools, so the model would not know them; "
                 "leave this field out, or serve a model that can call tools",
                 "tools");
}

}  // namespace

ReasoningStart::Kind reasoning_of(const ChatPrompt& messages, const std::string& prompt) {
  using Kind = ReasoningStart::Kind;
  if (!messages.continue_final_message) return opens_reasoning(prompt) ? Kind::open : Kind::text;
  const std::string last = messages.input.messages.back()["content"].get<std::string>();
  const bool open = trimmed(last).starts_with("<think>") && last.find("</think>") == std::string::npos;
  return open ? Kind::open : Kind::none;
}

ToolSyntax PromptText::tool_syntax() const {
  if (templates == nullptr)
    throw ApiError(400, "the model has no chat template; use /v1/completions", "messages");
  try {
    return syntax_of(templates->select(std::nullopt, true));
  } catch (const Error& error) {
    throw to_api_error(error, "tools");
  }
}

const Tokenizer& PromptText::required() const {
  if (tokenizer == nullptr)
    throw ApiError(400,
                   "the model has no tokenizer, so text is of no use to it; send token ids as the prompt "
                   "of /v1/completions");
  return *tokenizer;
}

RenderedPrompt PromptText::render(const ChatPrompt& prompt) const {
  if (templates == nullptr)
    throw ApiError(400, "the model has no chat template; use /v1/completions", "messages");
  ChatTemplateInput input = prompt.input;
  if (tokenizer != nullptr) {
    if (const auto bos = tokenizer->bos()) input.bos_token = tokenizer->token_text(*bos);
    if (const auto eos = tokenizer->eos()) input.eos_token = tokenizer->token_text(*eos);
  }
  try {
    const bool has_tools = !input.tools.is_null();
    const ChatTemplate chat_template = templates->select(std::nullopt, has_tools);
    if (has_tools) syntax_of(chat_template);
    RenderedPrompt rendered = chat_template.render(input);
    if (prompt.continue_final_message) cut_behind(rendered, prompt);
    return rendered;
  } catch (const Error& error) {
    throw to_api_error(error,
                       error.kind() == ErrorKind::invalid_argument ? "chat_template_kwargs" : "messages");
  }
}

std::vector<TokenId> PromptText::encode(const RenderedPrompt& prompt) const {
  return required().encode(prompt.text, prompt.trusted);
}

std::vector<TokenId> PromptText::encode(const std::string& text, bool add_special) const {
  std::vector<TokenId> ids = required().encode(text, SpecialTokens::all);
  return add_special ? tokenizer->add_special(std::move(ids)) : ids;
}

}  // namespace qwench::server
