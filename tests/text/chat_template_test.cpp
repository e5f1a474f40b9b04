#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "chat_goldens.h"
#include "core/large_integers.h"

namespace qwench {
namespace {

std::string render(const std::string& source, const ChatTemplateInput& input = {}) {
  return ChatTemplate::parse(source, "test").render(input).text;
}

TemplateError error_of(const std::string& source, const ChatTemplateInput& input = {}) {
  try {
    render(source, input);
  } catch (const TemplateError& error) {
    return error;
  }
  ADD_FAILURE() << source << " rendered";
  return TemplateError(TemplateErrorKind::other, "", "", 0, 0);
}

TEST(ChatTemplate, ErrorsTellLineAndColumn) {
  const TemplateError undefined = error_of("first\n\xC3\xA9\xC3\xA9 {{ nope.attr }}");
  EXPECT_EQ(undefined.line(), 2);
  EXPECT_EQ(undefined.column(), 12);
  EXPECT_STREQ(undefined.what(), "test: line 2, column 12: 'nope' is undefined");
  EXPECT_EQ(undefined.kind(), ErrorKind::template_error);

  const TemplateError syntax = error_of("{% if x %}\r\n{{ 1 +* 2 }}{% endif %}");
  EXPECT_EQ(syntax.template_kind(), TemplateErrorKind::syntax);
  EXPECT_EQ(syntax.line(), 2);
  EXPECT_EQ(syntax.column(), 7);

  const TemplateError inside = error_of("{% macro m(a) %}\n{{ a / 0 }}\n{% endmacro %}\n\n{{ m(1) }}");
  EXPECT_EQ(inside.line(), 2);
}

TEST(ChatTemplate, NumbersAreFormattedAsPythonFormatsThem) {  // each as CPython 3.11 gives it
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{{ '{:#}'.format(1e16) }}", "1.e+16"},
      {"{{ '{:#.3}'.format(100.0) }}", "1.00e+02"},
      {"{{ '{:#.1}'.format(0.0001) }}", "0.0001"},
      {"{{ '{:#.1}'.format(3.0) }}", "3.e+00"},
      {"{{ '{:.1}'.format(123456.789) }}", "1e+05"},
      {"{{ '{:_b}'.format(1234567) }}", "1_0010_1101_0110_1000_0111"},
      {"{{ '{:_e}'.format(1234567) }}", "1.234567e+06"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(render(source), expected) << source;
  for (const char* source :
       {"{{ '{:,n}'.format(1.5) }}", "{{ '{:_n}'.format(1) }}", "{{ '{:_c}'.format(65) }}",
        "{{ '{:#c}'.format(65) }}", "{{ '{:,x}'.format(255) }}"}) {
    EXPECT_EQ(error_of(source).template_kind(), TemplateErrorKind::other) << source;
  }
}

TEST(ChatTemplate, RaiseExceptionGivesItsSentence) {
  ChatTemplateInput input;
  input.messages = Json::array({{{"role", "robot"}}});
  const TemplateError error = error_of("{{ raise_exception('Unknown role: ' ~ messages[0].role) }}", input);
  EXPECT_EQ(error.template_kind(), TemplateErrorKind::raise_exception);
  EXPECT_EQ(error.message(), "Unknown role: robot");
}

TEST(ChatTemplate, KwargsReachTheTemplateUnchanged) {
  ChatTemplateInput input;
  input.kwargs = {{"enable_thinking", false},
                  {"depth", 1.0},
                  {"big", 18446744073709551615U},
                  {"list", {1, nullptr, "x"}}};
  EXPECT_EQ(render("{{ enable_thinking }} {{ depth }} {{ big }} {{ list }} {{ other is defined }}", input),
            "False 1.0 18446744073709551615 [1, None, 'x'] False");
  EXPECT_EQ(render("{{ enable_thinking is defined }}"), "False");
}

TEST(ChatTemplate, KwargsCannotReplaceTheFields) {
  ChatTemplateInput input;
  input.kwargs = {{"messages", Json::array()}};
  EXPECT_THROW(render("x", input), Error);
  input.kwargs = Json::array();
  EXPECT_THROW(render("x", input), Error);
}

TEST(ChatTemplate, TokensAreUndefinedWhenTheModelHasNone) {
  EXPECT_EQ(render("[{{ bos_token }}{{ eos_token is defined }}]"), "[False]");
  ChatTemplateInput input;
  input.bos_token = "<s>";
  EXPECT_EQ(render("[{{ bos_token }}]", input), "[<s>]");
}

TEST(ChatTemplate, TheClockCanBeGiven) {
  ChatTemplateInput input;
  input.now = chat_test::parse_time("2024-02-29T23:59:58");
  EXPECT_EQ(render("{{ strftime_now('%Y-%m-%d %H:%M:%S %j %A %-d %e %U %V %G') }}", input),
            "2024-02-29 23:59:58 060 Thursday 29 29 08 09 2024");
  EXPECT_EQ(render("{{ strftime_now('%Y') | int > 2023 }}"), "True");
}

TEST(ChatTemplate, DirectivesOfTimesAreThoseOfPythonOnGlibc) {
  ChatTemplateInput input;
  input.now = chat_test::parse_time("2024-03-05T07:08:09") + std::chrono::microseconds(123456);
  const std::pair<std::string, std::string> cases[] = {
      {"%-d|%e|%_d|%0e|%-e", "5| 5| 5|05|5"},
      {"%^a %^B %#b %#p %P %^P", "TUE MARCH MAR am am am"},
      {"%10Y|%010Y|%-10Y|%_10d|%3d|%05j", "0000002024|0000002024|      2024|         5|005|00065"},
      {"%Ey %Oy %EY %OY %Ed %Od %EB %OB %Ea %Oa", "24 24 2024 %OY %Ed 05 %EB March %Ea %Oa"},
      {"%Ec|%Oc|%Ex|%EX|%OX|%EC|%OC", "Tue Mar  5 07:08:09 2024|%Oc|03/05/24|07:08:09|%OX|20|20"},
      {"%E|%O|%", "%E|%O|%"},
      {"%+d %q %12? %^q %5%|%3n|%-t", "%+d %q         %12? %^Q     %|  \n|\t"},
      {"%f %-f %3f %Of %%f", "123456 %-f %3f %Of %f"},
      {"%z|%Z|%-Z|%3Z|%_z|%:z", "|||   ||%:z"},
      {"%20c|%^c|%015x|%#r|%_R",
       "Tue Mar  5 07:08:09 2024|TUE MAR  5 07:08:09 2024|000000003/05/24|07:08:09 AM|07:08"},
      {"%C %-C %5C %_5C %g %G %V %U %W %u %w %-I %l %k %_H",
       "20 20 00020    20 24 2024 10 09 10 2 2 7  7  7  7"},
      {"%é %^é %3é", "%é %^É %3é"},
      {"%h %^h %Eh %#Eb|%12", "Mar MAR %Eh %#EB|         %12"},
      {"%E%|%3O%|%EY", "%|  %|2024"},
      {"%-", "%-"},
      {"%5E", "  %5E"},
      {"%E%f", "%E123456"},
      {"%99999Y", ""},  // Python's buffer does not grow that far
      {"%1535d", std::string(1534, '0') + "5"},
      {"%2048d", ""},
  };
  for (const auto& [format, text] : cases) {
    input.kwargs = {{"format", format}};
    EXPECT_EQ(render("{{ strftime_now(format) }}", input), text) << format;
  }
}

TEST(ChatTemplate, IntegersBeyond64BitsAreExact) {
  ChatTemplateInput input;
  input.kwargs = parse_json_exactly(
      R"({"a": 123456789012345678901234567890, "b": [-18446744073709551616, 18446744073709551615],
                                "c": 1e20})",
      "kwargs", 200);
  EXPECT_EQ(render("{{ a }} {{ a + 1 }} {{ b }} {{ b | tojson }} {{ c }} {{ a is integer }}", input),
            "123456789012345678901234567890 123456789012345678901234567891 [-18446744073709551616, "
            "18446744073709551615] [-18446744073709551616, 18446744073709551615] 1e+20 True");
}

TEST(ChatTemplate, NullToolsAreNoneAndNotMissing) {
  EXPECT_EQ(render("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}"), "TrueTrueFalse");
}

TEST(ChatTemplate, MessagesAreGivenAsTheyAre) {  // the choice that apply_chat_template makes otherwise
  ChatTemplateInput input;
  input.messages = Json::array({{{"role", "assistant"}, {"content", nullptr}, {"reasoning", "r"}}});
  EXPECT_EQ(render("{{ messages[0].content is none }}{{ messages[0].reasoning_content is defined }}", input),
            "TrueFalse");
  EXPECT_EQ(render("{{ messages | length }}"), "0");
}

TEST(ChatTemplate, InvalidUtf8BecomesReplacementCharacters) {
  ChatTemplateInput input;
  input.messages = Json::array({"a\xFFz"});
  EXPECT_EQ(render("\xFE{{ messages[0] }}{{ messages[0] | length }}", input),
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBDz3");
}

TEST(ChatTemplate, ManyThreadsShareOneTemplate) {
  const ChatTemplate shared = ChatTemplate::parse(
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ 'role ' ~ m }}{% "
      "endfor %}{{ ns.n }}",
      "shared");
  ChatTemplateInput input;
  for (int i = 0; i < 200; ++i) input.messages.push_back("m");
  const std::string expected = shared.render(input).text;
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) same[t] += shared.render(input).text == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, 20));
}

// --- The templates of a model

class TemplateFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("qwench_chat_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string selected(const std::optional<std::string>& name, bool tools) const {
    return ChatTemplates::from_folder(folder_).select(name, tools).render({}).text;
  }
  std::filesystem::path folder_;
};

TEST_F(TemplateFolder, NoTemplateIsAnErrorWithASentence) {
  EXPECT_TRUE(ChatTemplates::from_folder(folder_).empty());
  EXPECT_THROW(selected({}, false), Error);
}

TEST_F(TemplateFolder, AStringInTheTokenizersConfig) {
  write("tokenizer_config.json", R"({"chat_template": "plain"})");
  EXPECT_EQ(selected({}, false), "plain");
  EXPECT_EQ(selected({}, true), "plain");
}

TEST_F(TemplateFolder, NamedTemplatesAreChosenByNameAndTools) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}, {"name": "rag", "template": "r"}]})");
  EXPECT_EQ(selected({}, false), "d");
  EXPECT_EQ(selected({}, true), "t");
  EXPECT_EQ(selected("rag", true), "r");
  try {
    selected("nope", false);
    ADD_FAILURE() << "there is no such template";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(std::string(error.what()).find("default, rag, tool_use"), std::string::npos) << error.what();
  }
}

TEST_F(TemplateFolder, AFileOverridesTheConfig) {
  write("tokenizer_config.json", R"({"chat_template": "config"})");
  write("chat_template.jinja", "file\n");
  write("additional_chat_templates/rag.jinja", "rag");
  EXPECT_EQ(selected({}, false), "file");
  EXPECT_EQ(selected("rag", false), "rag");
}

TEST_F(TemplateFolder, ABrokenTemplateIsAnErrorOnlyWhenItIsAskedFor) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "{% if %}"}]})");
  EXPECT_EQ(selected({}, false), "d");
  EXPECT_THROW(selected({}, true), TemplateError);
}

TEST_F(TemplateFolder, FieldsOfTheWrongTypeAreNamed) {
  for (const char* config : {R"({"chat_template": 5})", R"({"chat_template": [5]})",
                             R"({"chat_template": [{"name": "x"}]})", R"([])"}) {
    write("tokenizer_config.json", config);
    try {
      ChatTemplates::from_folder(folder_);
      ADD_FAILURE() << config;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::malformed) << error.what();
    }
  }
}

TEST(ChatTemplates, FromTheStringsOfAGguf) {
  const ChatTemplates templates = ChatTemplates::from_gguf({{"tokenizer.chat_template", "d"},
                                                            {"tokenizer.chat_template.tool_use", "t"},
                                                            {"tokenizer.ggml.model", "gpt2"}},
                                                           "model.gguf");
  EXPECT_EQ(templates.names(), (std::vector<std::string>{"default", "tool_use"}));
  EXPECT_EQ(templates.select({}, true).render({}).text, "t");
  EXPECT_EQ(templates.select({}, false).render({}).text, "d");
}

}  // namespace
}  // namespace qwench
