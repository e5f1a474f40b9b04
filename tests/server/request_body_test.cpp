#include "server/request_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api_error.h"

namespace qwench::server {
namespace {

using testing::HasSubstr;

const char* kMessages = R"("messages": [{"role": "user", "content": "Hi"}])";

GenerationBody chat(const std::string& more) {
  return read_chat_body(parse_body("{" + std::string(kMessages) + (more.empty() ? "" : ", " + more) + "}"));
}

GenerationBody completion(const std::string& fields) {
  return read_completion_body(parse_body("{" + fields + "}"));
}

/// The error that a body gives; fails the test where it gives none.
template <typename F>
ApiError error_of(F read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error;
  }
  ADD_FAILURE() << "the body was accepted";
  return ApiError(0, "");
}

TEST(ChatBody, EverySettingReachesTheRequest) {
  const GenerationBody read = chat(R"(
      "model": "m", "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "presence_penalty": 1,
      "frequency_penalty": -1, "repetition_penalty": 1.1, "logit_bias": {"5": -3}, "seed": 9, "n": 2,
      "stop": ["a", "b"], "stop_token_ids": [3], "include_stop_str_in_output": true, "min_tokens": 2,
      "ignore_eos": true, "skip_special_tokens": false, "stream": true, "stream_options": {"include_usage": true},
      "max_completion_tokens": 30, "logprobs": true, "top_logprobs": 4, "chat_template_kwargs": {"x": 1})");
  EXPECT_EQ(read.model, "m");
  EXPECT_FLOAT_EQ(*read.settings.sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(*read.settings.sampling.top_p, 0.9F);
  EXPECT_EQ(read.settings.sampling.top_k, 7);
  EXPECT_FLOAT_EQ(*read.settings.sampling.min_p, 0.1F);
  EXPECT_FLOAT_EQ(*read.settings.sampling.presence_penalty, 1);
  EXPECT_FLOAT_EQ(*read.settings.sampling.frequency_penalty, -1);
  EXPECT_FLOAT_EQ(*read.settings.sampling.repetition_penalty, 1.1F);
  EXPECT_EQ(read.settings.sampling.logit_bias->at(0), (std::pair<TokenId, float>(5, -3)));
  EXPECT_EQ(read.settings.sampling.seed, 9U);
  EXPECT_EQ(read.settings.n, 2);
  EXPECT_EQ(read.settings.stop.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.settings.stop.stop_token_ids, std::vector<TokenId>{3});
  EXPECT_TRUE(read.settings.include_stop);
  EXPECT_EQ(read.settings.stop.min_tokens, 2);
  EXPECT_TRUE(read.settings.stop.ignore_eos);
  EXPECT_FALSE(read.settings.skip_special_tokens);
  EXPECT_TRUE(read.stream);
  EXPECT_TRUE(read.include_usage);
  EXPECT_EQ(read.settings.stop.max_tokens, 30);
  EXPECT_EQ(read.settings.logprobs, 4);
  EXPECT_EQ(read.messages.input.kwargs, (Json{{"x", 1}}));
  EXPECT_TRUE(read.messages.input.add_generation_prompt);
}

TEST(ChatBody, NullIsTheSameAsAbsent) {
  const GenerationBody read = chat(R"(
      "temperature": null, "top_p": null, "n": null, "stop": null, "logit_bias": null, "seed": null, "stream": null,
      "max_tokens": null, "max_completion_tokens": null, "logprobs": null, "tools": null, "response_format": null,
      "stream_options": null, "tool_choice": null, "user": null, "stop_token_ids": null)");
  EXPECT_FALSE(read.settings.sampling.temperature);
  EXPECT_EQ(read.settings.n, 1);
  EXPECT_EQ(read.settings.stop.max_tokens, -1);
  EXPECT_FALSE(read.settings.logprobs);
}

TEST(ChatBody, WhatIsWrongIsNamed) {
  const struct {
    const char* field;
    const char* param;
    const char* says;
  } cases[] = {
      {R"("temperature": 2.5)", "temperature", "0 to 2"},
      {R"("temperature": "hot")", "temperature", "a number"},
      {R"("temperature": -0.1)", "temperature", "0 to 2"},
      {R"("top_p": 0)", "top_p", "above 0"},
      {R"("top_p": 1.1)", "top_p", "at most 1"},
      {R"("top_k": -1)", "top_k", "whole number"},
      {R"("top_k": 1.5)", "top_k", "whole number"},
      {R"("min_p": 2)", "min_p", "0 to 1"},
      {R"("presence_penalty": 2.1)", "presence_penalty", "-2"},
      {R"("frequency_penalty": -3)", "frequency_penalty", "-2"},
      {R"("repetition_penalty": 0)", "repetition_penalty", "above 0"},
      {R"("logit_bias": {"5": 101})", "logit_bias.5", "-100"},
      {R"("logit_bias": {"x": 1})", "logit_bias", "token id"},
      {R"("seed": 1e30)", "seed", "whole number"},
      {R"("seed": 0.5)", "seed", "whole number"},
      {R"("n": 0)", "n", "1 to 128"},
      {R"("n": 129)", "n", "1 to 128"},
      {R"("stop": "")", "stop", "at least 1"},
      {R"("stop": [1])", "stop[0]", "a string"},
      {R"("max_tokens": 0)", "max_tokens", "from 1"},
      {R"("max_tokens": -1)", "max_tokens", "from 1"},
      {R"("max_tokens": 5, "max_completion_tokens": 6)", "max_tokens", "newer name"},
      {R"("max_tokens": 2, "min_tokens": 3)", "min_tokens", "more than"},
      {R"("top_logprobs": 2)", "top_logprobs", "logprobs"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "0 to 20"},
      {R"("logprobs": 2)", "logprobs", "true or false"},
      {R"("stream_options": {"include_usage": true})", "stream_options", "stream"},
      {R"("stream": true, "stream_options": {"x": 1})", "stream_options.x", "not known"},
      {R"("tools": [{}])", "tools[0].type", "missing"},
      {R"("tools": {})", "tools", "an array"},
      {R"("tools": [{"type": "code_interpreter"}])", "tools[0].type", "code_interpreter"},
      {R"("tools": [{"type": "code_interpreter", "function": {"name": "f"}}])", "tools[0].type", "function"},
      {R"("tools": [{"type": "function", "function": {}}])", "tools[0].function.name", "missing"},
      {R"("tools": [{"type": "function", "function": {"name": ""}}])", "tools[0].function.name",
       "at least 1"},
      {R"("tools": [{"type": "function", "function": {"name":
          "a234567890b234567890c234567890d234567890e234567890f234567890g2345"}}])",
       "tools[0].function.name", "expected at most 64"},
      {R"("tools": [{"type": "function", "function": {"name": "a b"}}])", "tools[0].function.name",
       "letters"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])",
       "tools[0].function.parameters", "an object"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "schema": {}}}])",
       "tools[0].function.schema", "not known"},
      {R"("tools": [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "f"}}])",
       "tools[1].function.name", "two tools"},
      {R"("tool_choice": "required")", "tool_choice", "only with tools"},
      {R"("tool_choice": "any")", "tool_choice", "required"},
      {R"("tools": [{"type": "function", "function": {"name": "f"}}],
          "tool_choice": {"type": "function", "function": {"name": "g"}})",
       "tool_choice.function.name", "no tool"},
      {R"("parallel_tool_calls": 1)", "parallel_tool_calls", "true or false"},
      {R"("functions": [])", "functions", "tools"},
      {R"("function_call": "auto")", "function_call", "tools"},
      {R"("response_format": {"type": "xml"})", "response_format.type", "text"},
      {R"("guided_regex": "a", "grammar": "root ::= \"a\"")", "grammar", "another field"},
      {R"("guided_choice": [])", "guided_choice", "at least 1"},
      {R"("reasoning_effort": "low")", "reasoning_effort", "chat_template_kwargs"},
      {R"("logit_biass": {})", "logit_biass", "not known"},
      {R"("service_tier": "flex")", "service_tier", "auto"},
      {R"("continue_final_message": true, "add_generation_prompt": true)", "continue_final_message",
       "go with"},
  };
  for (const auto& wrong : cases) {
    const ApiError error = error_of([&] { chat(wrong.field); });
    EXPECT_EQ(error.param(), wrong.param) << wrong.field;
    EXPECT_THAT(error.what(), HasSubstr(wrong.says)) << wrong.field;
    EXPECT_THAT(error.what(), HasSubstr(wrong.param)) << wrong.field;
  }
  const ApiError none = error_of([] { read_chat_body(parse_body(R"({"messages": []})")); });
  EXPECT_EQ(none.param(), "messages");
  EXPECT_THAT(none.what(), HasSubstr("at least 1"));
}

TEST(ChatBody, FieldsWithoutEffectOnOpenAisAnswersAreAccepted) {
  EXPECT_NO_THROW(chat(R"("user": "u", "metadata": {"a": "b"}, "store": true, "service_tier": "auto",
                          "safety_identifier": "s", "prompt_cache_key": "k", "response_format": {"type": "text"},
                          "modalities": ["text"], "tool_choice": "none")"));
}

TEST(ChatBody, NegativeSeedsAreSeedsToo) {
  EXPECT_EQ(chat(R"("seed": -1)").settings.sampling.seed, UINT64_MAX);
  EXPECT_EQ(chat(R"("seed": 18446744073709551615)").settings.sampling.seed, UINT64_MAX);
  EXPECT_EQ(chat(R"("seed": 5.0)").settings.sampling.seed, 5U);
}

Json messages(const std::string& list) {
  return read_chat_body(parse_body(R"({"messages": )" + list + "}")).messages.input.messages;
}

TEST(Body, AFieldThatIsThereTwiceIsNamed) {
  const auto param_of = [](const std::string& body) {
    const ApiError error = error_of([&] { parse_body(body); });
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.what(), error.param() + ": this field is there twice");
    return error.param();
  };
  EXPECT_EQ(param_of(R"({"model": "m", "temperature": 0, "temperature": 1})"), "temperature");
  EXPECT_EQ(
      param_of(R"({"messages": [{"role": "user", "content": "a"}, {"role": "user", "role": "system"}]})"),
      "messages[1].role");
  EXPECT_EQ(param_of(R"({"guided_json": {"properties": {"a": true, "a": false}}})"),
            "guided_json.properties.a");
}

TEST(Messages, DeveloperIsSystemAndPartsAreJoined) {
  EXPECT_EQ(
      messages(R"([{"role": "developer", "content": "Be brief."},
                         {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])"),
      Json::parse(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a\nb"}])"));
}

TEST(Messages, ToolCallsReachTheTemplateWithTheirArgumentsAsObjects) {
  EXPECT_EQ(messages(R"([{"role": "assistant", "content": null, "reasoning_content": "hm",
                          "tool_calls": [{"id": "1", "type": "function",
                                          "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
                         {"role": "tool", "tool_call_id": "1", "content": "2"}])"),
            Json::parse(R"([{"role": "assistant", "content": "",
                             "tool_calls": [{"id": "1", "type": "function",
                                             "function": {"name": "f", "arguments": {"x": 1}}}],
                             "reasoning_content": "hm"},
                            {"role": "tool", "content": "2", "tool_call_id": "1"}])"));
}

TEST(Messages, AnAnswerCanBeSentBackAsItCame) {
  const Json read = messages(
      R"([{"role": "user", "content": "Hi"},
          {"role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null, "function_call": null,
           "tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}])");
  EXPECT_EQ(read[1]["content"], "");
  EXPECT_FALSE(read[1].contains("annotations"));
  EXPECT_EQ(read[1]["tool_calls"][0]["function"]["name"], "f");
}

TEST(Messages, AToolsResultIsOfACallThatWasMade) {
  const auto conversation = [](const std::string& call_id, const std::string& result) {
    return R"([{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [{)" + call_id +
           R"("type": "function", "function": {"name": "f", "arguments": "{}"}}]}, {"role": "tool", "content": "1")" +
           result + R"(}, {"role": "user", "content": "go on"}])";
  };
  EXPECT_EQ(messages(conversation(R"("id": "call_1", )", R"(, "tool_call_id": "call_1")")).size(), 4U);
  EXPECT_EQ(messages(conversation(R"("id": "call_1", )", "")).size(), 4U) << "no id is given";
  EXPECT_EQ(messages(conversation("", R"(, "tool_call_id": "call_1")")).size(), 4U) << "the call has no id";
  const ApiError error =
      error_of([&] { messages(conversation(R"("id": "call_1", )", R"(, "tool_call_id": "call_2")")); });
  EXPECT_EQ(error.status(), 400);
  EXPECT_EQ(error.param(), "messages[2].tool_call_id");
  EXPECT_THAT(error.what(), HasSubstr("has the id \"call_2\""));
  EXPECT_EQ(
      error_of([] {
        messages(
            R"([{"role": "user", "content": "?"}, {"role": "tool", "tool_call_id": "x", "content": "1"}])");
      }).param(),
      "messages[1].tool_call_id");
}

TEST(Messages, ArgumentsThatAreNoJsonReachTheTemplateAsTheyAre) {
  const Json read = messages(R"([{"role": "assistant", "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"x\": "}}, {"function": {"name": "f", "arguments": ""}}]}])");
  EXPECT_EQ(read[0]["tool_calls"][0]["function"]["arguments"], "{\"x\": ");
  EXPECT_EQ(read[0]["tool_calls"][1]["function"]["arguments"], Json::object());
}

TEST(Tools, ReachTheTemplateInTheirOrderWithoutStrictAndNulls) {
  const GenerationBody body = chat(R"("tools": [
      {"type": "function", "function": {"name": "f", "strict": true, "description": null,
                                        "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}},
      {"type": "function", "function": {"description": "d", "name": "g-2_"}}])");
  EXPECT_EQ(
      body.messages.input.tools.dump(),
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"b":{},"a":{}}}}},)"
      R"({"type":"function","function":{"description":"d","name":"g-2_"}}])");
  EXPECT_EQ(body.tools.choice, ToolUse::Choice::automatic);
  EXPECT_TRUE(body.tools.parallel);
  EXPECT_EQ(body.tools.strict, std::set<std::string>{"f"});
  ASSERT_EQ(body.tools.declared.size(), 2U);
  EXPECT_EQ(body.tools.declared[1].name, "g-2_");
  EXPECT_EQ(body.tools.declared[1].parameters.dump(),
            R"({"type":"object","properties":{},"additionalProperties":false})");
}

TEST(Tools, ChoiceSaysWhichAreShownAndWhichMustBeCalled) {
  const std::string tools =
      R"("tools": [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}])";
  const GenerationBody none = chat(tools + R"(, "tool_choice": "none")");
  EXPECT_TRUE(none.messages.input.tools.is_null());
  EXPECT_EQ(none.tools.choice, ToolUse::Choice::none);
  const GenerationBody required =
      chat(tools + R"(, "tool_choice": "required", "parallel_tool_calls": false)");
  EXPECT_EQ(required.tools.choice, ToolUse::Choice::required);
  EXPECT_EQ(required.tools.declared.size(), 2U);
  EXPECT_FALSE(required.tools.parallel);
  const GenerationBody named =
      chat(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})");
  EXPECT_EQ(named.tools.choice, ToolUse::Choice::required);
  ASSERT_EQ(named.tools.declared.size(), 1U);
  EXPECT_EQ(named.tools.declared[0].name, "g");
  EXPECT_EQ(named.messages.input.tools.size(), 2U);
  EXPECT_TRUE(chat(R"("tools": [], "parallel_tool_calls": true)").messages.input.tools.is_null());
}

TEST(Tools, ChoiceMayAllowSomeOfThem) {
  const auto allowing = [](const std::string& choice) {
    return chat(R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}},
                    {"type": "function", "function": {"name": "g"}}, {"type": "function", "function": {"name": "h"}}],
                   "tool_choice": )" +
                choice);
  };
  const auto allowed = [](const std::string& mode, const std::string& names) {
    return R"({"type": "allowed_tools", "allowed_tools": {"mode": ")" + mode + R"(", "tools": [)" + names +
           "]}}";
  };
  const std::string f = R"({"type": "function", "function": {"name": "f"}})";
  const std::string h = R"({"type": "function", "function": {"name": "h"}})";
  const GenerationBody may = allowing(allowed("auto", h + "," + f + "," + h));
  EXPECT_EQ(may.tools.choice, ToolUse::Choice::automatic);
  ASSERT_EQ(may.tools.declared.size(), 2U);
  EXPECT_EQ(may.tools.declared[0].name, "f") << "in the order of tools";
  EXPECT_EQ(may.tools.declared[1].name, "h");
  EXPECT_TRUE(may.tools.restricted);
  EXPECT_TRUE(may.tools.parallel);
  EXPECT_EQ(may.messages.input.tools.size(), 3U) << "all are shown";
  EXPECT_EQ(allowing(allowed("required", h)).tools.choice, ToolUse::Choice::required);
  const std::string g = R"({"type": "function", "function": {"name": "g"}})";
  EXPECT_FALSE(allowing(allowed("auto", f + "," + g + "," + h)).tools.restricted) << "all are allowed";

  const struct {
    std::string choice;
    const char* param;
    const char* says;
  } cases[] = {
      {allowed("auto", f + R"(, {"type": "function", "function": {"name": "x"}})"),
       "tool_choice.allowed_tools.tools[1].function.name", "no tool of this name"},
      {allowed("auto", ""), "tool_choice.allowed_tools.tools", "at least 1"},
      {allowed("none", f), "tool_choice.allowed_tools.mode", "expected \"auto\" or \"required\""},
      {R"({"type": "allowed_tools", "mode": "auto"})", "tool_choice.allowed_tools", "missing"},
      {R"({"type": "custom"})", "tool_choice.type", "expected \"function\" or \"allowed_tools\""},
      {R"({"function": {"name": "f"}})", "tool_choice.type", "missing"},
      {R"({"type": "function", "function": {}})", "tool_choice.function.name", "missing"},
  };
  for (const auto& wrong : cases) {
    const ApiError error = error_of([&] { allowing(wrong.choice); });
    EXPECT_EQ(error.param(), wrong.param) << wrong.choice;
    EXPECT_THAT(error.what(), HasSubstr(wrong.says)) << wrong.choice;
  }
}

TEST(Messages, WhatIsWrongIsNamed) {
  const struct {
    const char* message;
    const char* param;
  } cases[] = {
      {R"({"content": "x"})", "messages[0].role"},
      {R"({"role": "wizard", "content": "x"})", "messages[0].role"},
      {R"({"role": "user"})", "messages[0].content"},
      {R"({"role": "user", "content": null})", "messages[0].content"},
      {R"({"role": "assistant", "content": null})", "messages[0].content"},
      {R"({"role": "user", "content": 5})", "messages[0].content"},
      {R"({"role": "user", "content": []})", "messages[0].content"},
      {R"({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]})",
       "messages[0].content[0].type"},
      {R"({"role": "user", "content": [{"type": "text"}]})", "messages[0].content[0]"},
      {R"({"role": "user", "content": "x", "mood": "good"})", "messages[0].mood"},
      {R"({"role": "user", "content": "x", "reasoning_content": "y"})", "messages[0].reasoning_content"},
      {R"({"role": "user", "content": "x", "tool_call_id": "y"})", "messages[0].tool_call_id"},
      {R"({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[]"}}]})",
       "messages[0].tool_calls[0].function.arguments"},
      {R"("text")", "messages[0]"},
  };
  for (const auto& wrong : cases) {
    const ApiError error = error_of([&] { messages("[" + std::string(wrong.message) + "]"); });
    EXPECT_THAT(error.param(), testing::StartsWith(wrong.param)) << wrong.message << "\n" << error.what();
  }
}

TEST(CompletionBody, PromptsOfEveryKind) {
  EXPECT_EQ(std::get<std::string>(completion(R"("prompt": "a")").prompts.at(0)), "a");
  EXPECT_EQ(completion(R"("prompt": ["a", "b"])").prompts.size(), 2U);
  EXPECT_EQ(std::get<std::vector<TokenId>>(completion(R"("prompt": [1, 2])").prompts.at(0)),
            (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(completion(R"("prompt": [[1], [2, 3]])").prompts.size(), 2U);
  for (const char* wrong :
       {R"("prompt": null)", R"("prompt": [])", R"("prompt": [[]])", R"("prompt": [1, "a"])",
        R"("prompt": [-1])", R"("prompt": [1.5])", R"("prompt": {})", R"("n": 1)"}) {
    EXPECT_THAT(error_of([&] { completion(wrong); }).param(), testing::StartsWith("prompt")) << wrong;
  }
}

TEST(CompletionBody, DefaultsAreOpenAis) {
  const GenerationBody read = completion(R"("prompt": "a")");
  EXPECT_EQ(read.settings.stop.max_tokens, 16);
  EXPECT_FALSE(read.echo);
  EXPECT_FALSE(read.settings.logprobs);
}

TEST(CompletionBody, EchoWithLogprobsAsksForThePromptsToo) {
  const GenerationBody read = completion(R"("prompt": "a", "echo": true, "logprobs": 3, "max_tokens": 0)");
  EXPECT_EQ(read.settings.prompt_logprobs, 3);
  EXPECT_EQ(read.settings.stop.max_tokens, 0);
}

TEST(CompletionBody, BestOfIsOnlyN) {
  EXPECT_NO_THROW(completion(R"("prompt": "a", "n": 2, "best_of": 2)"));
  EXPECT_EQ(error_of([] { completion(R"("prompt": "a", "best_of": 2)"); }).param(), "best_of");
  EXPECT_EQ(error_of([] { completion(R"("prompt": "a", "suffix": "b")"); }).param(), "suffix");
}

TEST(Body, MustBeAnObjectOfBoundedDepth) {
  for (const std::string& wrong : {std::string(""), std::string("{"), std::string("[]"), std::string("nul"),
                                   "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}"}) {
    error_of([&] { parse_body(wrong); });
  }
}

}  // namespace
}  // namespace qwench::server
