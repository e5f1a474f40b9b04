#include <gmock/gmock.h>

#include "core/large_integers.h"
#include "other_apis.h"
#include "server/anthropic_answer.h"
#include "server/anthropic_request.h"

namespace qwench::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace test;

GenerationBody read_messages(const std::string& body) { return read_anthropic_body(Json::parse(body), {}); }

TEST(AnthropicBody, BecomesAChat) {
  const GenerationBody body =
      read_messages(R"({"model": "m", "max_tokens": 30, "system": [{"type": "text", "text": "Be brief."},
      {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
      "messages": [{"role": "user", "content": "Hi"},
                   {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
                                                     {"type": "text", "text": "Hello"}]},
                   {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
      "stop_sequences": ["x"], "temperature": 0.5, "top_k": 3, "top_p": 0.9, "stream": true, "metadata": {"user_id": "u"}})");
  EXPECT_EQ(body.messages.input.messages, Json::parse(R"([
      {"role": "system", "content": "Be brief.\nBe kind."}, {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": "Hello", "reasoning_content": "hm"}, {"role": "user", "content": "a\nb"}])"));
  EXPECT_EQ(body.messages.input.kwargs, Json::parse(R"({"enable_thinking": false})"));
  EXPECT_EQ(body.model, "m");
  EXPECT_EQ(body.settings.stop.max_tokens, 30);
  EXPECT_THAT(body.settings.stop.stop, ElementsAre("x"));
  EXPECT_FLOAT_EQ(*body.settings.sampling.temperature, 0.5F);
  EXPECT_EQ(body.settings.sampling.top_k, 3);
  EXPECT_TRUE(body.stream);
  EXPECT_TRUE(body.messages.input.add_generation_prompt);
}

TEST(AnthropicBody, ResultsOfToolsAreMessagesOfTheirOwn) {
  const GenerationBody body = read_messages(R"({"max_tokens": 5, "messages": [
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "7"},
                                   {"type": "tool_result", "tool_use_id": "u", "is_error": true,
                                    "content": [{"type": "text", "text": "no"}]},
                                   {"type": "text", "text": "So?"}]}]})");
  EXPECT_EQ(body.messages.input.messages, Json::parse(R"([
      {"role": "assistant", "content": "", "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]},
      {"role": "tool", "content": "7", "tool_call_id": "t"}, {"role": "tool", "content": "Error: no", "tool_call_id": "u"},
      {"role": "user", "content": "So?"}])"));
}

TEST(AnthropicBody, AnAssistantsLastMessageGoesOnAndThinkingIsAskedFor) {
  const GenerationBody open = read_messages(
      R"({"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "He"}]})");
  EXPECT_TRUE(open.messages.continue_final_message);
  EXPECT_FALSE(open.messages.input.add_generation_prompt);
  EXPECT_STREQ(open.messages.continues_by, "messages");
  const GenerationBody thinks =
      read_messages(R"({"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024},
      "messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(thinks.messages.input.kwargs["enable_thinking"], true);
}

TEST(AnthropicBody, ErrorsNameItsOwnFields) {
  const struct {
    const char* body;
    const char* param;
  } cases[] = {
      {R"({"messages": [{"role": "user", "content": "Hi"}]})", "max_tokens"},
      {R"({"max_tokens": 0, "messages": [{"role": "user", "content": "Hi"}]})", "max_tokens"},
      {R"({"max_tokens": 1, "messages": []})", "messages"},
      {R"({"max_tokens": 1, "messages": [{"role": "system", "content": "Hi"}]})", "messages[0].role"},
      {R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]})",
       "messages[0].content[0].type"},
      {R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text"}]}]})",
       "messages[0].content[0].text"},
      {R"({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "thinking", "thinking": "x"}]}]})",
       "messages[0].content[0]"},
      {R"({"max_tokens": 1, "messages": [{"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]})",
       "messages[0].content[0]"},
      {R"({"max_tokens": 1, "n": 2, "messages": [{"role": "user", "content": "Hi"}]})", "n"},
      {R"({"max_tokens": 1, "mcp_servers": [], "messages": [{"role": "user", "content": "Hi"}]})",
       "mcp_servers"},
      {R"({"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 2000}, "messages": [{"role": "user", "content": "Hi"}]})",
       "thinking.budget_tokens"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(error_of([&] { read_messages(one.body); }).param(), one.param) << one.body;
  }
}

TEST(AnthropicError, HasItsShape) {
  EXPECT_EQ(ApiError(400, "max_tokens: no", "max_tokens").to_json(ErrorShape::anthropic), Json::parse(R"(
      {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: no"}})"));
  EXPECT_EQ(ApiError(503, "later").to_json(ErrorShape::anthropic)["error"]["type"], "overloaded_error");
  EXPECT_EQ(ApiError(500, "bad").to_json(ErrorShape::anthropic)["error"]["type"], "api_error");
}

TEST(AnthropicAnswer, ThinkingAndTextAreBlocks) {
  AnthropicAnswer answer(head(false), prompt_of(10), true);
  answer.take(0, delta("<think>\nhm\n</think>\n\nYes", FinishReason::stop));
  answer.take_result(prompt_of(10), 0, {});
  EXPECT_EQ(answer.whole(totals()),
            Json::parse(R"({"id": "id", "type": "message", "role": "assistant", "model": "m",
      "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "Yes"}],
      "stop_reason": "end_turn", "stop_sequence": null,
      "usage": {"input_tokens": 2, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 8, "output_tokens": 4}})"));
}

TEST(AnthropicAnswer, ThinkingThatWasNotAskedForIsLeftOut) {
  AnthropicAnswer answer(head(false), prompt_of(10), false);
  answer.take(0, delta("<think>\nhm\n</think>\n\nYes", FinishReason::length));
  const Json whole = answer.whole(totals());
  EXPECT_EQ(whole["content"], Json::parse(R"([{"type": "text", "text": "Yes"}])"));
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
}

TEST(AnthropicAnswer, AStopSequenceIsNamed) {
  AnthropicAnswer answer(head(false), prompt_of(10), false);
  answer.take(0, delta("Yes", FinishReason::stop));
  Result result;
  result.stop_string = "END";
  answer.take_result(prompt_of(10), 0, result);
  EXPECT_EQ(answer.whole(totals())["stop_reason"], "stop_sequence");
  EXPECT_EQ(answer.whole(totals())["stop_sequence"], "END");
}

TEST(AnthropicAnswer, AStreamJoinsToTheWholeHoweverItIsChopped) {
  const std::string text = "<think>\nhm, so\n</think>\n\nYes, it is.";
  for (const size_t step : {1, 3, 100}) {
    AnthropicAnswer answer(head(true), prompt_of(10), true);
    const std::vector<Json> events = events_of(stream_of(answer, text, step, FinishReason::stop));
    EXPECT_EQ(events.front()["type"], "message_start");
    EXPECT_EQ(events[1]["type"], "ping");
    EXPECT_EQ(events.back()["type"], "message_stop");
    EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "end_turn");
    EXPECT_EQ(events[events.size() - 2]["usage"]["output_tokens"], 4);
    Json content = Json::array();
    bool open = false;
    for (const Json& event : events) {
      if (event["type"] == "content_block_start") {
        EXPECT_FALSE(std::exchange(open, true));
        EXPECT_EQ(event["index"], content.size());
        content.push_back(event["content_block"]);
      } else if (event["type"] == "content_block_delta") {
        EXPECT_TRUE(open);
        EXPECT_EQ(event["index"], content.size() - 1);
        const char* field = event["delta"]["type"] == "text_delta" ? "text" : "thinking";
        content.back()[field].get_ref<std::string&>() += event["delta"][field].get<std::string>();
      } else if (event["type"] == "content_block_stop") {
        EXPECT_TRUE(std::exchange(open, false));
      }
    }
    EXPECT_FALSE(open);
    EXPECT_EQ(content, answer.whole(totals())["content"]) << "in steps of " << step;
    EXPECT_EQ(content[1]["text"], "Yes, it is.");
  }
}

TEST(AnthropicAnswer, CallsAreBlocks) {
  AnthropicAnswer whole(calling_head(false), prompt_of(10), false);
  whole.take(0, delta(kCall, FinishReason::stop));
  const Json message = whole.whole(totals());
  EXPECT_EQ(message["stop_reason"], "tool_use");
  EXPECT_EQ(message["content"], Json::parse(R"([{"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "toolu_id_1", "name": "f", "input": {"x": 1}}])"));
  for (const size_t step : {1, 7, 200}) {
    AnthropicAnswer answer(calling_head(true), prompt_of(10), false);
    const std::vector<Json> events = events_of(stream_of(answer, kCall, step, FinishReason::stop));
    std::string arguments;
    for (const Json& event : events) {
      if (event["type"] == "content_block_delta" && event["delta"]["type"] == "input_json_delta")
        arguments += event["delta"]["partial_json"];
    }
    EXPECT_EQ(Json::parse(arguments), Json::parse(R"({"x": 1})"));
    EXPECT_EQ(answer.whole(totals())["content"], message["content"]);
    EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "tool_use");
  }
}

TEST(AnthropicBody, ToolsAreTheChats) {
  const GenerationBody body =
      read_messages(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}],
      "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}, {"name": "g", "input_schema": {}}],
      "tool_choice": {"type": "tool", "name": "g", "disable_parallel_tool_use": true}})");
  EXPECT_EQ(body.messages.input.tools, Json::parse(R"([
      {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
      {"type": "function", "function": {"name": "g", "parameters": {}}}])"));
  EXPECT_EQ(body.tools.choice, ToolUse::Choice::required);
  ASSERT_EQ(body.tools.declared.size(), 1U);
  EXPECT_EQ(body.tools.declared[0].name, "g");
  EXPECT_EQ(error_of([] {
              read_messages(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}],
                       "tools": [{"name": "a b", "input_schema": {}}]})");
            }).param(),
            "tools[0].name");
}

TEST(AnthropicBody, IntegersBeyond64BitsReachTheTemplateAsTheyAre) {
  const GenerationBody body = read_anthropic_body(parse_body(R"({"max_tokens": 5, "messages": [
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": 123456789012345678901}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "7"}]}]})"),
                                                  {});
  const Json& arguments = body.messages.input.messages[0]["tool_calls"][0]["function"]["arguments"];
  EXPECT_EQ(large_integer(arguments["x"]), "123456789012345678901");
}

TEST(AnthropicBody, NamesOfToolsHaveAtMost128Characters) {
  const auto named = [](size_t length) {
    const std::string name(length, 'a');
    return read_messages(R"({"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}],
        "tool_choice": {"type": "tool", "name": ")" +
                         name + R"("}, "tools": [{"name": ")" + name + R"(", "input_schema": {}}]})");
  };
  EXPECT_EQ(named(128).tools.declared[0].name.size(), 128U);
  const ApiError error = error_of([&] { named(129); });
  EXPECT_EQ(error.param(), "tools[0].name");
  EXPECT_THAT(error.what(), HasSubstr("expected at most 128"));
}

TEST(AnthropicAnswer, AnErrorInAStreamIsAnEvent) {
  AnthropicAnswer answer(head(true), prompt_of(1), false);
  const std::vector<Json> events = events_of(answer.error_events(ApiError(504, "too long")));
  EXPECT_THAT(types_of(events), ElementsAre("error"));
  EXPECT_EQ(events[0]["error"]["type"], "timeout_error");
}

}  // namespace
}  // namespace qwench::server
