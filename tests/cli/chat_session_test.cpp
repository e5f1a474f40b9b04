#include "cli/chat_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "qwench/error.h"

namespace qwench::cli {
namespace {

using testing::HasSubstr;

ChatSession session() {
  return ChatSession({}, "Be terse.", SamplingOptions{.temperature = 0.6f, .top_k = 40});
}

std::string file_name(const char* name) { return std::filesystem::path(testing::TempDir()) / name; }

std::string error_of(ChatSession& chat, const std::string& line) {
  try {
    chat.command(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ChatSession, TheSystemMessageComesFirst) {
  ChatSession chat = session();
  chat.add_user("hi");
  chat.add_assistant("hello");
  EXPECT_EQ(chat.messages().dump(),
            R"([{"role":"system","content":"Be terse."},{"role":"user","content":"hi"},)"
            R"({"role":"assistant","content":"hello"}])");
}

TEST(ChatSession, SystemIsShownSetAndRemoved) {
  ChatSession chat = session();
  EXPECT_EQ(chat.command("/system").text, "Be terse.\n");
  chat.command("/system  Rhyme always. ");
  EXPECT_EQ(chat.messages()[0]["content"], "Rhyme always.");
  chat.command("/system \"\"");
  EXPECT_TRUE(chat.messages().empty());
}

TEST(ChatSession, ResetKeepsTheSystemMessageAndSettings) {
  ChatSession chat = session();
  chat.command("/params top_k 5");
  chat.add_user("hi");
  chat.command("/reset");
  EXPECT_EQ(chat.messages().size(), 1U);
  EXPECT_EQ(chat.parameters()["top_k"], 5);
}

TEST(ChatSession, UndoForgetsTheLastExchange) {
  ChatSession chat = session();
  chat.add_user("one");
  chat.add_assistant("1");
  chat.add_user("two");
  chat.add_assistant("2");
  chat.command("/undo");
  EXPECT_EQ(chat.messages().size(), 3U);
  chat.command("/undo");
  EXPECT_THAT(error_of(chat, "/undo"), HasSubstr("nothing"));
}

TEST(ChatSession, RetryAsksForTheLastAnswerAgain) {
  ChatSession chat = session();
  EXPECT_THAT(error_of(chat, "/retry"), HasSubstr("no message"));
  chat.add_user("one");
  chat.add_assistant("1");
  EXPECT_TRUE(chat.command("/retry").answer);
  EXPECT_EQ(chat.messages().back()["role"], "user");
}

TEST(ChatSession, SaveAndLoadRoundTrip) {
  const std::string file = file_name("qwench-chat-test.json");
  ChatSession chat = session();
  chat.add_user("\"quotes\" and \xE4\xBD\xA0");
  chat.add_assistant("<think>x</think>ok");
  EXPECT_THAT(chat.command("/save " + file).text, HasSubstr(file));
  ChatSession other({}, "", {});
  EXPECT_THAT(other.command("/load " + file).text, HasSubstr("3 messages"));
  EXPECT_EQ(other.messages(), chat.messages());
  std::remove(file.c_str());
}

TEST(ChatSession, BadFilesLeaveTheConversationAsItWas) {
  const std::string file = file_name("qwench-chat-bad.json");
  ChatSession chat = session();
  chat.add_user("hi");
  for (const char* content :
       {"{", "3", R"({"messages": 3})", R"([{"role": "user"}])", R"([{"role": "tool", "content": "x"}])",
        R"([{"role": "user", "content": 3}])", R"([{"role": "user", "content": "x", "odd": 1}])", "[1]"}) {
    std::ofstream(file) << content;
    EXPECT_NE(error_of(chat, "/load " + file), "no error") << content;
    EXPECT_EQ(chat.messages().size(), 2U);
  }
  std::remove(file.c_str());
  EXPECT_THAT(error_of(chat, "/load " + file), HasSubstr(file));
  EXPECT_THAT(error_of(chat, "/load"), HasSubstr("file name"));
  EXPECT_THAT(error_of(chat, "/save /nowhere/x.json"), HasSubstr("/nowhere/x.json"));
}

TEST(ChatSession, ParamsShowTheEffectiveSetAndChangeIt) {
  ChatSession chat = session();
  EXPECT_THAT(chat.command("/params").text, HasSubstr("temperature          0.6"));
  chat.command("/params temperature 0.1");
  chat.command("/params top_p=0.5");
  chat.command("/params stop END");
  EXPECT_EQ(chat.parameters()["temperature"], 0.1);
  EXPECT_EQ(chat.parameters()["top_p"], 0.5);
  EXPECT_EQ(chat.parameters()["top_k"], 40);
  EXPECT_EQ(chat.parameters()["stop"][0], "END");
  chat.command("/params temperature null");
  EXPECT_EQ(chat.parameters()["temperature"], 0.6);
}

TEST(ChatSession, ParamsShowTheSeedThatWasDrawnForTheLastAnswer) {
  ChatSession chat = session();
  EXPECT_THAT(chat.command("/params").text, HasSubstr("seed                 null\n"));
  chat.set_answer_seed(77);
  EXPECT_THAT(chat.command("/params").text,
              HasSubstr("seed                 77 (drawn for the last answer)\n"));
  EXPECT_FALSE(chat.settings().sampling.seed);  // the next answer has another
  EXPECT_THAT(chat.command("/params seed 5").text, HasSubstr("seed                 5\n"));
}

TEST(ChatSession, BadParamsChangeNothing) {
  ChatSession chat = session();
  for (const char* line : {"/params temperature -1", "/params temperature", "/params heat 3",
                           "/params top_k x", "/params stop \"\""}) {
    EXPECT_NE(error_of(chat, line), "no error") << line;
  }
  EXPECT_EQ(chat.parameters()["temperature"], 0.6);
}

TEST(ChatSession, ThinkingCanBeSwitched) {
  ChatSession chat = session();
  EXPECT_FALSE(chat.settings().thinking);
  chat.command("/think");
  EXPECT_EQ(chat.settings().thinking, true);
  chat.command("/nothink");
  EXPECT_EQ(chat.settings().thinking, false);
}

TEST(ChatSession, UnknownCommandsAreNamedAndHelpListsTheKnown) {
  ChatSession chat = session();
  EXPECT_THAT(error_of(chat, "/fly me"), HasSubstr("/fly"));
  for (const char* name :
       {"/system", "/reset", "/save", "/load", "/params", "/think", "/nothink", "/help", "/exit"}) {
    EXPECT_THAT(chat.command("/help").text, HasSubstr(name));
  }
  EXPECT_TRUE(chat.command("/exit").leave);
}

}  // namespace
}  // namespace qwench::cli
