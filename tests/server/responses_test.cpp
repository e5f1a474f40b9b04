#include <gmock/gmock.h>

#include "other_apis.h"
#include "server/responses_answer.h"
#include "server/responses_request.h"

namespace qwench::server {
namespace {

using testing::ElementsAre;
using namespace test;

GenerationBody read_response(const std::string& body) { return read_responses_body(Json::parse(body), {}); }

TEST(ResponsesBody, ATextIsAUsersMessage) {
  const GenerationBody body =
      read_response(R"({"input": "Hi", "instructions": "Be brief.", "max_output_tokens": 9,
      "temperature": 0.5, "top_p": 0.9, "stream": true, "store": true, "reasoning": {"effort": "none"}})");
  EXPECT_EQ(
      body.messages.input.messages,
      Json::parse(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])"));
  EXPECT_EQ(body.messages.input.kwargs, Json::parse(R"({"enable_thinking": false})"));
  EXPECT_EQ(body.settings.stop.max_tokens, 9);
  EXPECT_TRUE(body.stream);
}

TEST(ResponsesBody, NamesOfToolsHaveAtMost128Characters) {
  const auto named = [](size_t length) {
    return read_response(R"({"input": "Hi", "tools": [{"type": "function", "name": ")" +
                         std::string(length, 'a') + R"("}]})");
  };
  EXPECT_EQ(named(128).tools.declared[0].name.size(), 128U);
  EXPECT_EQ(error_of([&] { named(129); }).param(), "tools[0].name");
}

TEST(ResponsesBody, ToolChoiceMayAllowSomeTools) {
  const auto allowing = [](const std::string& names, const std::string& mode) {
    return read_response(
        R"({"input": "Hi", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
            "tool_choice": {"type": "allowed_tools", "mode": ")" +
        mode + R"(", "tools": [)" + names + "]}}");
  };
  const GenerationBody one = allowing(R"({"type": "function", "name": "g"})", "required");
  EXPECT_EQ(one.tools.choice, ToolUse::Choice::required);
  ASSERT_EQ(one.tools.declared.size(), 1U);
  EXPECT_EQ(one.tools.declared[0].name, "g");
  EXPECT_EQ(one.messages.input.tools.size(), 2U);
  EXPECT_EQ(allowing(R"({"type": "function", "name": "g"})", "auto").tools.choice,
            ToolUse::Choice::automatic);
  const ApiError unknown = error_of(
      [&] { allowing(R"({"type": "function", "name": "g"}, {"type": "function", "name": "x"})", "auto"); });
  EXPECT_EQ(unknown.param(), "tool_choice.tools[1].name");
  EXPECT_STREQ(unknown.what(), "tool_choice.tools[1].name: there is no tool of this name among tools");
  EXPECT_EQ(error_of([&] { allowing("", "auto"); }).param(), "tool_choice.tools");
}

TEST(ResponsesBody, ItemsOfOneTurnAreOneMessage) {
  const GenerationBody body = read_response(R"({"input": [
      {"role": "developer", "content": "Be brief."},
      {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
      {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"type": "message", "id": "msg", "role": "assistant", "status": "completed",
       "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}]},
      {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"x\": 1}"},
      {"type": "function_call", "call_id": "d", "name": "g", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c", "output": "7"},
      {"type": "function_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "8"}]},
      {"role": "assistant", "content": "15"},
      {"role": "assistant", "content": "Or 16."}]})");
  EXPECT_EQ(body.messages.input.messages, Json::parse(R"([
      {"role": "system", "content": "Be brief."}, {"role": "user", "content": "a\nb"},
      {"role": "assistant", "content": "Let me see.", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "d", "type": "function", "function": {"name": "g", "arguments": {}}}], "reasoning_content": "hm"},
      {"role": "tool", "content": "7", "tool_call_id": "c"}, {"role": "tool", "content": "8", "tool_call_id": "d"},
      {"role": "assistant", "content": "15"}, {"role": "assistant", "content": "Or 16."}])"));
}

TEST(ResponsesBody, ErrorsNameItsOwnFields) {
  const struct {
    const char* body;
    const char* param;
  } cases[] = {
      {R"({})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": "Hi", "previous_response_id": "resp_1"})", "previous_response_id"},
      {R"({"input": "Hi", "max_output_tokens": 0})", "max_output_tokens"},
      {R"({"input": "Hi", "background": true})", "background"},
      {R"({"input": "Hi", "n": 1})", "n"},
      {R"({"input": "Hi", "tools": [{"type": "web_search", "name": "x"}]})", "tools[0].type"},
      {R"({"input": [{"type": "item_reference", "id": "x"}]})", "input[0].type"},
      {R"({"input": [{"role": "user"}]})", "input[0].content"},
      {R"({"input": [{"content": "x"}]})", "input[0].role"},
      {R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})", "input[0].call_id"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})", "input[0].content[0].type"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(error_of([&] { read_response(one.body); }).param(), one.param) << one.body;
  }
}

TEST(ResponsesAnswer, AWholeAnswerIsAListOfItems) {
  ResponsesAnswer answer(head(false), prompt_of(10), echoed_fields(Json::parse(R"({"temperature": 0.5})")));
  answer.take(0, delta("<think>\nhm\n</think>\n\nYes", FinishReason::stop));
  const Json whole = answer.whole(totals());
  EXPECT_EQ(whole["object"], "response");
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["temperature"], 0.5);
  EXPECT_EQ(whole["store"], false);
  EXPECT_EQ(whole["output"], Json::parse(R"([
      {"id": "rs_id_0", "type": "reasoning", "status": "completed", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
      {"id": "msg_id_1", "type": "message", "status": "completed", "role": "assistant",
       "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Yes"}]}])"));
  EXPECT_EQ(whole["usage"]["input_tokens_details"]["cached_tokens"], 8);
  EXPECT_EQ(whole["usage"]["total_tokens"], 14);
}

TEST(ResponsesAnswer, CallsAreItems) {
  ResponsesAnswer whole(calling_head(false), prompt_of(10), echoed_fields(Json::object()));
  whole.take(0, delta(kCall, FinishReason::stop));
  const Json output = whole.whole(totals())["output"];
  ASSERT_EQ(output.size(), 2U);
  EXPECT_EQ(output[1]["type"], "function_call");
  EXPECT_EQ(output[1]["name"], "f");
  EXPECT_EQ(Json::parse(output[1]["arguments"].get<std::string>()), Json::parse(R"({"x": 1})"));
  for (const size_t step : {1, 7, 200}) {
    ResponsesAnswer answer(calling_head(true), prompt_of(10), echoed_fields(Json::object()));
    std::string arguments;
    for (const Json& event : events_of(stream_of(answer, kCall, step, FinishReason::stop))) {
      if (event["type"] == "response.function_call_arguments.delta") arguments += event["delta"];
      if (event["type"] == "response.function_call_arguments.done") {
        EXPECT_EQ(event["arguments"], arguments);
      }
    }
    EXPECT_EQ(arguments, output[1]["arguments"]);
    EXPECT_EQ(answer.whole(totals())["output"], output);
  }
}

TEST(ResponsesAnswer, AnAnswerThatWasCutIsIncomplete) {
  ResponsesAnswer answer(head(false), prompt_of(10), echoed_fields(Json::object()));
  answer.take(0, delta("Yes", FinishReason::length));
  const Json whole = answer.whole(totals());
  EXPECT_EQ(whole["status"], "incomplete");
  EXPECT_EQ(whole["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(whole["output"][0]["status"], "incomplete");
}

TEST(ResponsesAnswer, AStreamJoinsToTheWholeHoweverItIsChopped) {
  const std::string text = "<think>\nhm, so\n</think>\n\nYes, it is.";
  for (const size_t step : {1, 3, 100}) {
    ResponsesAnswer answer(head(true), prompt_of(10), echoed_fields(Json::object()));
    const std::vector<Json> events = events_of(stream_of(answer, text, step, FinishReason::stop));
    EXPECT_EQ(events[0]["type"], "response.created");
    EXPECT_EQ(events[1]["type"], "response.in_progress");
    std::string reasoning;
    std::string said;
    Json items = Json::array();
    for (size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i]["sequence_number"], i);
      const std::string type = events[i]["type"];
      if (type == "response.reasoning_text.delta") reasoning += events[i]["delta"];
      if (type == "response.output_text.delta") said += events[i]["delta"];
      if (type == "response.output_text.done") {
        EXPECT_EQ(events[i]["text"], said);
      }
      if (type == "response.reasoning_text.done") {
        EXPECT_EQ(events[i]["text"], reasoning);
      }
      if (type == "response.output_item.done") items.push_back(events[i]["item"]);
    }
    EXPECT_EQ(said, "Yes, it is.");
    EXPECT_EQ(reasoning, "hm, so");
    EXPECT_EQ(events.back()["type"], "response.completed");
    EXPECT_EQ(events.back()["response"]["output"], items);
    EXPECT_EQ(events.back()["response"], answer.whole(totals()));
    if (step == 100) {
      EXPECT_THAT(types_of(events),
                  ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                              "response.content_part.added", "response.reasoning_text.delta",
                              "response.reasoning_text.done", "response.content_part.done",
                              "response.output_item.done", "response.output_item.added",
                              "response.content_part.added", "response.output_text.delta",
                              "response.output_text.done", "response.content_part.done",
                              "response.output_item.done", "response.completed"));
    }
  }
}

}  // namespace
}  // namespace qwench::server
