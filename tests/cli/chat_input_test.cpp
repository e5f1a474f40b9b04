#include "cli/chat_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

using testing::HasSubstr;

LocalTime time_of(const std::string& text) {
  ChatTemplateInput input;
  EXPECT_TRUE(read_chat_field("now", text, input));
  return *input.now;
}

TEST(ChatFields, AreReadByName) {
  ChatTemplateInput input;
  input.kwargs = Json{{"enable_thinking", true}, {"other", 1}};
  const Json fields = Json::parse(
      R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"a": 1}], "documents": [{"b": 2}],
      "add_generation_prompt": true, "kwargs": {"enable_thinking": false}, "bos_token": "<s>", "eos_token": "</s>",
      "now": "2025-03-07T14:05:09"})");
  for (const auto& [name, value] : fields.items()) EXPECT_TRUE(read_chat_field(name, value, input)) << name;
  EXPECT_EQ(input.messages[0]["content"], "x");
  EXPECT_EQ(input.tools[0]["a"], 1);
  EXPECT_EQ(input.documents[0]["b"], 2);
  EXPECT_TRUE(input.add_generation_prompt);
  EXPECT_EQ(input.kwargs, (Json{{"enable_thinking", false}, {"other", 1}}));
  EXPECT_EQ(input.bos_token, "<s>");
  EXPECT_EQ(input.eos_token, "</s>");
  EXPECT_FALSE(read_chat_field("message", Json(), input));
}

TEST(ChatFields, WrongTypesAreErrorsThatNameTheField) {
  for (const auto& [field, wrong] :
       std::vector<std::pair<std::string, std::string>>{{"messages", "\"x\""},
                                                        {"messages", "[\"x\"]"},
                                                        {"messages", "null"},
                                                        {"tools", "{}"},
                                                        {"documents", "1"},
                                                        {"add_generation_prompt", "1"},
                                                        {"kwargs", "[]"},
                                                        {"bos_token", "1"},
                                                        {"now", "3"},
                                                        {"now", "\"yesterday\""}}) {
    ChatTemplateInput input;
    try {
      read_chat_field(field, Json::parse(wrong), input);
      ADD_FAILURE() << field << ": " << wrong;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(field));
    }
  }
}

TEST(ChatFields, TimesAreIso) {
  using namespace std::chrono;
  const auto day = local_days(year(2025) / 3 / 7);
  EXPECT_EQ(time_of("2025-03-07"), day);
  EXPECT_EQ(time_of("2025-03-07T14:05"), day + 14h + 5min);
  EXPECT_EQ(time_of("2025-03-07 14:05:09"), day + 14h + 5min + 9s);
  EXPECT_EQ(time_of("2025-03-07T14:05:09.5"), day + 14h + 5min + 9s + 500ms);
  EXPECT_EQ(time_of("2025-03-07T14:05:09.123456"), day + 14h + 5min + 9s + 123456us);
  for (const char* wrong : {"", "2025", "2025-02-30", "2025-13-01", "2025-03-07T24:00", "2025-03-07T14:60",
                            "2025-03-07T14:05:61", "2025-3-7", "2025-03-07T14:05:09Z", "2025-03-07T14:05:09.",
                            "2025-03-07T14:05:09.1234567", "+025-03-07"}) {
    EXPECT_THROW(time_of(wrong), Error) << wrong;
  }
}

TemplateFlags parse(const Arguments& arguments) {
  CommandLine line("test", "", "");
  TemplateFlags flags;
  flags.add_to(line);
  EXPECT_TRUE(line.parse(arguments));
  flags.finish();
  return flags;
}

TEST(TemplateFlags, ThinkingIsAVariable) {
  EXPECT_EQ(parse({}).kwargs(), Json::object());
  EXPECT_EQ(parse({"--think"}).kwargs(), (Json{{"enable_thinking", true}}));
  EXPECT_EQ(parse({"--no-think", "--kwargs", R"({"a": 1})"}).kwargs(),
            (Json{{"a", 1}, {"enable_thinking", false}}));
  EXPECT_THROW(parse({"--think", "--no-think"}), UsageError);
  EXPECT_THROW(parse({"--kwargs", "[1]"}), UsageError);
  EXPECT_THROW(parse({"--kwargs", "{"}), UsageError);
}

}  // namespace
}  // namespace qwench::cli
