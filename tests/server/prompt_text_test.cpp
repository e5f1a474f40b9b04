#include "server/prompt_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api_error.h"

namespace qwench::server {
namespace {

using testing::HasSubstr;

ChatTemplates chatml() {
  ChatTemplates templates;
  templates.add("default",
                "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
                "a template");
  return templates;
}

ChatPrompt goes_on(Json last, const char* field = "continue_final_message") {
  ChatPrompt prompt;
  prompt.input.messages = {{{"role", "user"}, {"content", "Hi"}}, std::move(last)};
  prompt.continue_final_message = true;
  prompt.continues_by = field;
  return prompt;
}

std::string rendered(const ChatPrompt& prompt) {
  const ChatTemplates templates = chatml();
  return PromptText{nullptr, &templates}.render(prompt).text;
}

TEST(PromptText, AMessageThatGoesOnEndsThePrompt) {
  EXPECT_EQ(rendered(goes_on({{"role", "assistant"}, {"content", "Hello, "}})),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello, ");
}

TEST(PromptText, AMessageWithoutTextOrWithCallsCannotGoOn) {
  const Json calls = Json::parse(R"([{"type": "function", "function": {"name": "f", "arguments": {}}}])");
  const std::pair<Json, const char*> cases[] = {
      {{{"role", "assistant"}, {"content", "Well"}, {"tool_calls", calls}}, "the last message calls tools"},
      {{{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}}, "the last message calls tools"},
      {{{"role", "assistant"}, {"content", " \n"}}, "no text"},
  };
  for (const char* field : {"continue_final_message", "messages"}) {
    for (const auto& [last, sentence] : cases) {
      try {
        rendered(goes_on(last, field));
        ADD_FAILURE() << last;
      } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400);
        EXPECT_EQ(error.param(), field);
        EXPECT_THAT(error.what(),
                    testing::AllOf(testing::StartsWith(std::string(field) + ": "), HasSubstr(sentence)));
      }
    }
  }
}

TEST(PromptText, AnswersBeginWithReasoningWhereTheirPromptHasOpenedIt) {
  using Kind = ReasoningStart::Kind;
  const auto of = [](const std::string& last) {
    return reasoning_of(goes_on({{"role", "assistant"}, {"content", last}}), "unread");
  };
  EXPECT_EQ(of("<think>\nLet me"), Kind::open);
  EXPECT_EQ(of("\n<think>"), Kind::open);
  EXPECT_EQ(of("<think>\nhm\n</think>\n\nSo"), Kind::none) << "it goes on with the answer";
  EXPECT_EQ(of("The tag <think> opens"), Kind::none) << "text that speaks of it";
  EXPECT_EQ(of("Hello"), Kind::none);
  ChatPrompt fresh;
  EXPECT_EQ(reasoning_of(fresh, "<|im_start|>assistant\n<think>\n"), Kind::open);
  EXPECT_EQ(reasoning_of(fresh, "<|im_start|>assistant\n"), Kind::text);
}

}  // namespace
}  // namespace qwench::server
