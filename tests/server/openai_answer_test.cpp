#include "server/openai_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/choice_text.h"

namespace qwench::server {
namespace {

using testing::ElementsAre;

struct Texts {
  std::string content;
  std::string reasoning;
};

/// The text pushed in pieces of `step` bytes.
Texts split(const std::string& text, size_t step, bool open = false) {
  ChoiceText splitter({open ? ReasoningStart::Kind::open : ReasoningStart::Kind::text});
  Texts all;
  const auto push = [&](StreamDelta delta) {
    const ChoicePart part = splitter.push(delta);
    all.content += part.content();
    all.reasoning += part.reasoning;
  };
  for (size_t at = 0; at < text.size(); at += step) push({.text = text.substr(at, step)});
  push({.finish_reason = FinishReason::stop});
  return all;
}

TEST(ChoiceText, ReasoningIsSeparatedHoweverItIsChopped) {
  const struct {
    const char* text;
    bool open;
    const char* reasoning;
    const char* content;
  } cases[] = {
      {"<think>\nhm\n\nso\n</think>\n\nYes.\n", false, "hm\n\nso", "Yes.\n"},
      {"\n<think>hm</think>Yes", false, "hm", "Yes"},
      {"hm\n</think>\n\nYes", true, "hm", "Yes"},
      {"hm and on", true, "hm and on", ""},
      {"<think>\n\n</think>\n\nYes", false, "", "Yes"},
      {"\n\nYes <think>no</think>", false, "", "\n\nYes <think>no</think>"},
      {"plain", false, "", "plain"},
      {"", false, "", ""},
  };
  for (const auto& one : cases) {
    for (const size_t step : {1, 2, 3, 5, 100}) {
      const Texts part = split(one.text, step, one.open);
      EXPECT_EQ(part.reasoning, one.reasoning) << one.text << " in steps of " << step;
      EXPECT_EQ(part.content, one.content) << one.text << " in steps of " << step;
    }
  }
}

AnswerHead head(bool chat, bool stream, bool usage = false) {
  AnswerHead head;
  head.id = "id";
  head.created = 5;
  head.model = "m";
  head.chat = chat;
  head.stream = stream;
  head.include_usage = usage;
  return head;
}

PromptChoices two_choices() {
  PromptChoices prompt;
  prompt.count = 2;
  prompt.reasoning = {};
  return prompt;
}

StreamDelta delta(int index, std::string text, std::optional<FinishReason> finish = std::nullopt) {
  StreamDelta delta;
  delta.index = index;
  delta.text = std::move(text);
  delta.ids = {1};
  delta.finish_reason = finish;
  return delta;
}

AnswerTotals totals() {
  AnswerTotals totals;
  totals.usage = {10, 4, 8};
  return totals;
}

/// The JSON of every event, and "[DONE]" as it is.
std::vector<Json> events_of(const std::string& text) {
  std::vector<Json> events;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find("\n\n", at);
    EXPECT_NE(end, std::string::npos);
    const std::string event = text.substr(at, end - at);
    EXPECT_EQ(event.substr(0, 6), "data: ");
    events.push_back(event == "data: [DONE]" ? Json("[DONE]") : Json::parse(event.substr(6)));
    at = end + 2;
  }
  return events;
}

TEST(OpenAiAnswer, WholeChatHasOpenAisShape) {
  OpenAiAnswer answer(head(true, false), {two_choices()});
  EXPECT_EQ(answer.take(0, delta(0, "<think>hm</think>")), "");
  answer.take(1, delta(1, "B", FinishReason::length));
  answer.take(0, delta(0, "A", FinishReason::stop));
  const Json whole = answer.whole(totals());
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"], Json::parse(R"([
      {"index": 0, "message": {"role": "assistant", "content": "A", "refusal": null, "annotations": [], "reasoning_content": "hm"},
       "logprobs": null, "finish_reason": "stop"},
      {"index": 1, "message": {"role": "assistant", "content": "B", "refusal": null, "annotations": []},
       "logprobs": null, "finish_reason": "length"}])"));
  EXPECT_EQ(whole["usage"]["total_tokens"], 14);
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
  EXPECT_EQ(whole["timings"]["cache_n"], 8);
}

TEST(OpenAiAnswer, StreamedChatJoinsToTheWhole) {
  OpenAiAnswer answer(head(true, true, true), {two_choices()});
  std::string text = answer.first_events();
  text += answer.take(0, delta(0, "<think>\nh"));
  text += answer.take(0, delta(0, "m\n</think>\n\nA"));
  text += answer.take(1, delta(1, "B", FinishReason::length));
  text += answer.take(0, delta(0, "!", FinishReason::stop));
  text += answer.last_events(totals());
  const std::vector<Json> events = events_of(text);
  ASSERT_GE(events.size(), 6U);
  EXPECT_EQ(events.back(), "[DONE]");
  const Json& usage = events[events.size() - 2];
  EXPECT_EQ(usage["choices"], Json::array());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 4);
  std::string content[2];
  std::string reasoning[2];
  Json finish[2];
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    EXPECT_EQ(events[i]["object"], "chat.completion.chunk");
    EXPECT_TRUE(events[i]["usage"].is_null());
    const Json& choice = events[i]["choices"][0];
    const auto index = choice["index"].get<size_t>();
    EXPECT_EQ(choice["delta"].contains("role"), i < 2);
    content[index] += choice["delta"].value("content", "");
    reasoning[index] += choice["delta"].value("reasoning_content", "");
    if (!choice["finish_reason"].is_null()) finish[index] = choice["finish_reason"];
  }
  EXPECT_EQ(content[0], "A!");
  EXPECT_EQ(reasoning[0], "hm");
  EXPECT_EQ(content[1], "B");
  EXPECT_EQ(finish[0], "stop");
  EXPECT_EQ(finish[1], "length");
  EXPECT_TRUE(events[events.size() - 3].contains("timings"));
}

TEST(OpenAiAnswer, UsageComesInAStreamOnlyWhenAskedFor) {
  OpenAiAnswer answer(head(true, true), {PromptChoices{}});
  std::string text = answer.first_events();
  text += answer.take(0, delta(0, "A", FinishReason::stop));
  text += answer.last_events(totals());
  for (const Json& event : events_of(text)) {
    EXPECT_FALSE(event.is_object() && event.contains("usage")) << event;
  }
}

TEST(OpenAiAnswer, EchoBeginsEveryChoice) {
  PromptChoices prompt = two_choices();
  prompt.echo = "Once ";
  OpenAiAnswer answer(head(false, false), {prompt});
  answer.take(0, delta(0, "a", FinishReason::stop));
  answer.take(1, delta(1, "b", FinishReason::stop));
  const Json whole = answer.whole(totals());
  EXPECT_EQ(whole["object"], "text_completion");
  EXPECT_EQ(whole["choices"][0]["text"], "Once a");
  EXPECT_EQ(whole["choices"][1]["text"], "Once b");
}

AnswerHead with_tools(bool stream) {
  AnswerHead with = head(true, stream);
  with.tools = ToolCallOptions{ToolSyntax::hermes, {{"f", nullptr}}, true};
  return with;
}

const char* const kCall = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";

TEST(OpenAiAnswer, CallsOfToolsHaveOpenAisShape) {
  OpenAiAnswer answer(with_tools(false), {two_choices()});
  answer.take(0, delta(0, "<think>" + std::string(kCall) + "</think>\n\nWell.\n"));
  answer.take(0, delta(0, std::string(kCall) + "\n" + kCall, FinishReason::stop));
  answer.take(1, delta(1, std::string(kCall).substr(0, std::string(kCall).find('1')), FinishReason::length));
  Json choices = answer.whole(totals())["choices"];
  std::set<std::string> ids;
  for (Json& choice : choices) {
    for (Json& call : choice["message"]["tool_calls"]) {
      EXPECT_THAT(call["id"].get<std::string>(), testing::MatchesRegex("call_[0-9a-f]{24}"));
      ids.insert(call["id"]);
      call.erase("id");
    }
  }
  EXPECT_EQ(ids.size(), 3U);
  EXPECT_EQ(choices[0]["message"]["reasoning_content"], kCall);  // no call of its own
  EXPECT_EQ(choices[0]["message"]["content"], "Well.");
  EXPECT_EQ(choices[0]["finish_reason"], "tool_calls");
  EXPECT_EQ(choices[0]["message"]["tool_calls"], Json::parse(R"([
      {"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}},
      {"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}])"));
  EXPECT_EQ(choices[1]["message"]["content"], nullptr);
  EXPECT_EQ(choices[1]["finish_reason"], "length");
  EXPECT_EQ(choices[1]["message"]["tool_calls"],
            Json::parse(R"([{"type": "function", "function": {"name": "f", "arguments": "{\"a\": "}}])"));
}

TEST(OpenAiAnswer, StreamedCallsBeginWithTheirIdAndNameAndGoOnWithArguments) {
  OpenAiAnswer answer(with_tools(true), {PromptChoices{}});
  const std::string text = "Well.\n" + std::string(kCall);
  std::string stream = answer.first_events();
  for (size_t at = 0; at < text.size(); at += 3)
    stream += answer.take(0, delta(0, text.substr(at, 3),
                                   at + 3 < text.size() ? std::nullopt : std::optional(FinishReason::stop)));
  stream += answer.last_events(totals());
  std::string content;
  std::string arguments;
  int begun = 0;
  int fragments = 0;
  Json finish;
  for (const Json& event : events_of(stream)) {
    if (!event.is_object()) continue;
    const Json& choice = event["choices"][0];
    content += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
    if (!choice["delta"].contains("tool_calls")) continue;
    ASSERT_EQ(choice["delta"]["tool_calls"].size(), 1U);
    const Json& call = choice["delta"]["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    if (call.contains("id")) {
      ++begun;
      EXPECT_EQ(call["type"], "function");
      EXPECT_EQ(call["function"], Json::parse(R"({"name": "f", "arguments": ""})"));
    } else {
      ++fragments;
      EXPECT_EQ(call.size(), 2U);
      EXPECT_EQ(call["function"].size(), 1U);
      arguments += call["function"]["arguments"];
    }
  }
  EXPECT_EQ(content, "Well.");
  EXPECT_EQ(begun, 1);
  EXPECT_GT(fragments, 1);
  EXPECT_EQ(arguments, R"({"a": 1})");
  EXPECT_EQ(finish, "tool_calls");
}

TEST(OpenAiAnswer, ACallThatAStopStringOrTheLimitCutsLeavesNoTags) {
  const std::string text = kCall + ("\n" + std::string(kCall)).substr(0, 20);
  const std::string first = R"([{"type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}])";
  for (const bool demanded : {false, true}) {
    for (const bool stopped : {false, true}) {
      AnswerHead head = with_tools(false);
      head.tools->calls_only = demanded;
      OpenAiAnswer answer(head, {PromptChoices{}});
      StreamDelta last = delta(0, text, stopped ? FinishReason::stop : FinishReason::length);
      if (stopped) last.stop_string = "me";
      answer.take(0, last);
      Json choice = answer.whole(totals())["choices"][0];
      choice["message"]["tool_calls"][0].erase("id");
      EXPECT_EQ(choice["message"]["tool_calls"], Json::parse(first));
      EXPECT_EQ(choice["message"]["content"], nullptr);
      EXPECT_EQ(choice["finish_reason"], stopped ? "tool_calls" : "length");
    }
  }
}

TEST(OpenAiAnswer, AnAnswerOfAGivenFormIsNoReasoningWhateverItLooksLike) {
  for (const ReasoningStart start :
       {ReasoningStart{ReasoningStart::Kind::none}, {ReasoningStart::Kind::token, 5}}) {
    PromptChoices prompt;
    prompt.reasoning = start;
    OpenAiAnswer answer(head(true, false), {prompt});
    answer.take(0, delta(0, "<think>a</think>b", FinishReason::stop));
    const Json message = answer.whole(totals())["choices"][0]["message"];
    EXPECT_EQ(message["content"], "<think>a</think>b");
    EXPECT_FALSE(message.contains("reasoning_content"));
  }
}

TEST(OpenAiAnswer, WithoutToolsTheTagsAreText) {
  OpenAiAnswer answer(head(true, false), {PromptChoices{}});
  answer.take(0, delta(0, kCall, FinishReason::stop));
  const Json choice = answer.whole(totals())["choices"][0];
  EXPECT_EQ(choice["message"]["content"], kCall);
  EXPECT_EQ(choice["finish_reason"], "stop");
}

}  // namespace
}  // namespace qwench::server
