#include <gmock/gmock.h>

#include "other_apis.h"
#include "server/ollama_answer.h"
#include "server/ollama_common.h"
#include "server/ollama_request.h"

namespace qwench::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace test;

ServedModel model() {
  ServedModel model;
  model.context = 512;
  return model;
}

GenerationBody ollama_chat(const std::string& body) {
  return read_ollama_chat_body(Json::parse(body), model());
}
GenerationBody generate(const std::string& body) {
  return read_ollama_generate_body(Json::parse(body), model());
}

TEST(OllamaPages, ParametersAreCountedAsOllamaDoes) {
  EXPECT_EQ(ollama_count(494032768), "494.03M");
  EXPECT_EQ(ollama_count(1543714304), "1.5B");
  EXPECT_EQ(ollama_count(8000000000), "8B");
  EXPECT_EQ(ollama_count(7000000), "7M");
  EXPECT_EQ(ollama_count(12345), "12K");
  EXPECT_EQ(ollama_count(999), "999");
}

TEST(OllamaChatBody, NamesOfToolsHaveAtMost128Characters) {
  const auto named = [](size_t length) {
    return ollama_chat(
        R"({"messages": [{"role": "user", "content": "Hi"}], "tools": [{"function": {"name": ")" +
        std::string(length, 'a') + R"("}}]})");
  };
  EXPECT_EQ(named(128).tools.declared[0].name.size(), 128U);
  EXPECT_THAT(error_of([&] { named(129); }).what(), HasSubstr("expected at most 128"));
}

TEST(OllamaChatBody, EveryOptionReachesTheRequest) {
  const GenerationBody body =
      ollama_chat(R"({"model": "m:latest", "messages": [{"role": "user", "content": "Hi", "images": []},
      {"role": "assistant", "thinking": "hm", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
      {"role": "tool", "content": "7", "tool_name": "f"}], "think": false, "keep_alive": "5m",
      "options": {"num_predict": 9, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "seed": 7, "stop": ["x"],
                  "repeat_penalty": 1.1, "presence_penalty": 1, "frequency_penalty": -1, "num_ctx": 512, "num_thread": 4}})");
  EXPECT_EQ(body.model, "m");
  EXPECT_TRUE(body.stream) << "where nothing is said";
  EXPECT_EQ(body.messages.input.messages, Json::parse(R"([{"role": "user", "content": "Hi"},
      {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
       "reasoning_content": "hm"}, {"role": "tool", "content": "7", "name": "f"}])"));
  EXPECT_EQ(body.messages.input.kwargs, Json::parse(R"({"enable_thinking": false})"));
  EXPECT_EQ(body.settings.stop.max_tokens, 9);
  EXPECT_THAT(body.settings.stop.stop, ElementsAre("x"));
  EXPECT_FLOAT_EQ(*body.settings.sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(*body.settings.sampling.repetition_penalty, 1.1F);
  EXPECT_FLOAT_EQ(*body.settings.sampling.min_p, 0.1F);
  EXPECT_EQ(body.settings.sampling.seed, 7U);
  EXPECT_FALSE(ollama_chat(R"({"stream": false, "messages": [{"role": "user", "content": "Hi"}]})").stream);
}

TEST(OllamaGenerateBody, APromptIsAUsersMessageOrRaw) {
  const GenerationBody body =
      generate(R"({"prompt": "Hi", "system": "Be brief.", "template": "", "suffix": ""})");
  EXPECT_EQ(
      body.messages.input.messages,
      Json::parse(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])"));
  const GenerationBody raw = generate(R"({"prompt": "Hi", "raw": true, "options": {"num_predict": 5}})");
  EXPECT_FALSE(raw.chat);
  EXPECT_EQ(std::get<std::string>(raw.prompts.at(0)), "Hi");
  EXPECT_EQ(raw.settings.stop.max_tokens, 5);
  EXPECT_EQ(generate(R"({"prompt": "Hi", "raw": true})").settings.stop.max_tokens, -1);
}

TEST(OllamaBody, WithoutAPromptTheModelIsOnlyLoaded) {
  const GenerationBody body = ollama_chat(R"({"model": "m", "messages": []})");
  ASSERT_TRUE(body.at_once);
  EXPECT_EQ(body.at_once(head(true)), Json::parse(R"({"model": "m", "created_at": "1970-01-02T00:00:00Z",
      "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "load"})"));
  EXPECT_TRUE(generate(R"({"model": "m"})").at_once);
}

TEST(OllamaBody, ErrorsNameItsOwnFields) {
  const struct {
    const char* more;
    const char* param;
  } cases[] = {
      {R"("template": "{{ .Prompt }}")", "template"},
      {R"("suffix": "x")", "suffix"},
      {R"("images": ["x"])", "images"},
      {R"("context": [1])", "context"},
      {R"("options": {"num_predict": 0})", "options.num_predict"},
      {R"("options": {"num_ctx": 513})", "options.num_ctx"},
      {R"("options": {"mirostat": 1})", "options.mirostat"},
      {R"("options": {"foo": 1})", "options.foo"},
      {R"("format": "xml")", "format"},
      {R"("raw": true, "system": "x")", "system"},
      {R"("think": "much")", "think"},
  };
  for (const auto& one : cases) {
    const std::string body = R"({"prompt": "Hi", )" + std::string(one.more) + "}";
    EXPECT_EQ(error_of([&] { generate(body); }).param(), one.param) << body;
  }
  EXPECT_EQ(ApiError(404, "no").to_json(ErrorShape::ollama), Json::parse(R"({"error": "no"})"));
}

TEST(OllamaAnswer, WholeAnswersHaveTheirCountsAndNanoseconds) {
  OllamaAnswer answer(head(false), prompt_of(10), true);
  EXPECT_EQ(answer.take(0, delta("<think>\nhm\n</think>\n\nYes", FinishReason::stop)), "");
  EXPECT_EQ(answer.whole(totals()), Json::parse(R"({"model": "m", "created_at": "1970-01-02T00:00:00Z",
      "message": {"role": "assistant", "content": "Yes", "thinking": "hm"}, "done": true, "done_reason": "stop",
      "total_duration": 750000000, "load_duration": 0, "prompt_eval_count": 10, "prompt_eval_duration": 250000000,
      "eval_count": 4, "eval_duration": 500000000})"));
}

TEST(OllamaAnswer, CallsComeWholeWithTheirArgumentsAsAnObject) {
  const Json calls = Json::parse(R"([{"function": {"name": "f", "arguments": {"x": 1}}}])");
  OllamaAnswer whole(calling_head(false), prompt_of(10), true);
  whole.take(0, delta(kCall, FinishReason::stop));
  EXPECT_EQ(whole.whole(totals())["message"]["content"], "I look.");
  EXPECT_EQ(whole.whole(totals())["message"]["tool_calls"], calls);
  for (const size_t step : {1, 7, 200}) {
    OllamaAnswer answer(calling_head(true), prompt_of(10), true);
    const std::string stream = stream_of(answer, kCall, step, FinishReason::stop);
    Json streamed = Json::array();
    for (size_t at = 0; at < stream.size(); at = stream.find('\n', at) + 1) {
      const Json line = Json::parse(stream.substr(at, stream.find('\n', at) - at));
      if (line["message"].contains("tool_calls"))
        for (const Json& call : line["message"]["tool_calls"]) streamed.push_back(call);
    }
    EXPECT_EQ(streamed, calls) << "in steps of " << step;
  }
}

TEST(OllamaAnswer, AStreamIsLinesThatJoinToTheWhole) {
  const std::string text = "<think>\nhm, so\n</think>\n\nYes, it is.";
  for (const bool is_chat : {true, false}) {
    for (const size_t step : {1, 3, 100}) {
      OllamaAnswer answer(head(true), prompt_of(10), is_chat);
      const std::string stream = stream_of(answer, text, step, FinishReason::length);
      std::string said;
      std::string thought;
      Json last;
      for (size_t at = 0; at < stream.size(); at = stream.find('\n', at) + 1) {
        EXPECT_TRUE(last.is_null() || last["done"] == false);
        last = Json::parse(stream.substr(at, stream.find('\n', at) - at));
        const Json& parts = is_chat ? last["message"] : last;
        said += parts[is_chat ? "content" : "response"].get<std::string>();
        if (parts.contains("thinking")) thought += parts["thinking"].get<std::string>();
      }
      EXPECT_EQ(said, "Yes, it is.");
      EXPECT_EQ(thought, "hm, so");
      EXPECT_EQ(last["done"], true);
      EXPECT_EQ(last["done_reason"], "length");
      EXPECT_EQ(last["eval_count"], 4);
    }
  }
}

}  // namespace
}  // namespace qwench::server
