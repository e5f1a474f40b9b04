#include "text/tool_calls.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/utf8.h"
#include "sanitized.h"

namespace qwench {
namespace {

std::vector<ToolDeclaration> weather_tools() {
  return {{"get_weather", Json::parse(R"({"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}, "limit": {"type": "number"},
      "metric": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
      "where": {"type": "object"}, "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
      "note": {"type": ["string", "null"]}, "unit": {"enum": ["C", "F"]}, "place": {"$ref": "#/$defs/place"}},
      "$defs": {"place": {"type": "object"}}})")},
          {"now", nullptr}};
}

ToolCallOptions options(ToolSyntax syntax = ToolSyntax::hermes) { return {syntax, weather_tools(), true}; }
const ToolSyntax kXml = ToolSyntax::qwen3_coder;

/// A message as one text, to compare and to read in failures.
std::string shown(const ToolMessage& message) {
  std::ostringstream out;
  out << "[" << message.content << "]";
  for (const ToolCall& call : message.calls) out << " " << call.name << "(" << call.arguments << ")";
  if (message.open) out << "...";
  return out.str();
}

std::string read(const std::string& text, ToolSyntax syntax = ToolSyntax::hermes) {
  return shown(parse_tool_calls(options(syntax), text));
}

std::string hermes(const std::string& object) { return "<tool_call>\n" + object + "\n</tool_call>"; }

std::string call_of(const std::string& parameters) {
  return "<tool_call>\n<function=get_weather>\n" + parameters + "</function>\n</tool_call>";
}
std::string parameter(const std::string& name, const std::string& value) {
  return "<parameter=" + name + ">\n" + value + "\n</parameter>\n";
}

/// The same text through push() in pieces that end at `cuts`.
ToolMessage in_pieces(const ToolCallOptions& how, const std::string& text, const std::vector<size_t>& cuts,
                      bool cut = false) {
  ToolCallParser parser(how);
  ToolMessage message;
  const auto add = [&](const std::vector<ToolTextPart>& parts) {
    for (const ToolTextPart& part : parts) {
      EXPECT_TRUE(is_valid_utf8(part.text)) << part.text;
      if (part.kind == ToolTextPart::Kind::content) {
        EXPECT_EQ(part.call, -1);
        EXPECT_FALSE(part.text.empty());
        message.content += part.text;
      } else if (part.kind == ToolTextPart::Kind::call) {
        EXPECT_EQ(part.call, static_cast<int>(message.calls.size()));
        message.calls.push_back({part.text, ""});
      } else {
        EXPECT_EQ(part.call, static_cast<int>(message.calls.size()) - 1);
        EXPECT_FALSE(part.text.empty());
        message.calls.back().arguments += part.text;
      }
    }
  };
  size_t begin = 0;
  for (const size_t end : cuts) {
    add(parser.push(std::string_view(text).substr(begin, end - begin)));
    begin = end;
  }
  add(parser.push(std::string_view(text).substr(begin)));
  add(parser.finish(cut));
  EXPECT_EQ(parser.calls(), static_cast<int>(message.calls.size()));
  message.open = parser.open();
  return message;
}

TEST(ToolCalls, HermesCallHasTheModelsOwnArguments) {
  EXPECT_EQ(read(hermes(R"({"name": "get_weather", "arguments": {"city": "Paris",  "days": 2}})")),
            R"([] get_weather({"city": "Paris",  "days": 2}))");
  EXPECT_EQ(read(hermes(R"({"arguments": {"city": "Paris"}, "name": "get_weather"})")),
            R"([] get_weather({"city": "Paris"}))");
  EXPECT_EQ(read(hermes(R"({"name": "get_weather", "parameters": {"days": 1}})")),
            R"([] get_weather({"days": 1}))");
  EXPECT_EQ(read(hermes(R"({"id": 7, "name": "f", "arguments": {"a": [1, {"b": {}}]}, "x": null})")),
            R"([] f({"a": [1, {"b": {}}]}))");
}

TEST(ToolCalls, ArgumentsMayBeMissingNullOrAStringOfJson) {
  EXPECT_EQ(read(hermes(R"({"name": "now"})")), "[] now({})");
  EXPECT_EQ(read(hermes(R"({"name": "now", "arguments": null})")), "[] now({})");
  EXPECT_EQ(read(hermes(R"({"name": "f", "arguments": "{\"a\": \"b\\nc\"}"})")), R"([] f({"a": "b\nc"}))");
}

TEST(ToolCalls, TextStandsBeforeBetweenAndBehindCalls) {
  const std::string one = hermes(R"({"name": "now", "arguments": {}})");
  EXPECT_EQ(read("I look.\n" + one), "[I look.] now({})");
  EXPECT_EQ(read("\n\n" + one + "\n" + one + "\n"), "[] now({}) now({})");
  EXPECT_EQ(read("a \n" + one + "\nb\n" + one + "\nc\n"), "[a\nb\nc\n] now({}) now({})");
  EXPECT_EQ(read(one + one), "[] now({}) now({})");
}

TEST(ToolCalls, TextWithoutCallsIsContentToTheLastByte) {
  for (const std::string text :
       {"", " ", "\n hi \n\n", "a < b", "<tool", "<tool_call>", "<tool_call>\n",
        "the tag <tool_call> opens a call\n", "</tool_call>", "<tool_call>\n{\"name\"", "<<tool_call"}) {
    EXPECT_EQ(read(text), "[" + text + "]");
    EXPECT_EQ(read(text, kXml), "[" + text + "]");
  }
}

TEST(ToolCalls, WhatIsNoCallStaysContent) {
  for (const std::string object :
       {"{}", "[]", "hello", R"({"name": 5, "arguments": {}})", R"({"name": "", "arguments": {}})",
        R"({"name": "f", "arguments": 5})", R"({"name": "f", "arguments": "no json"})",
        R"({"name": "f" "arguments": {}})", R"({'name': 'f', 'arguments': {}})", R"({"arguments": {}})",
        R"({"name": "f", "arguments": [1]})", R"({"name": "f", "arguments": })",
        R"({"arguments": {"a": }, "name": "f"})", R"({"name": f})"}) {
    const std::string text = hermes(object);
    EXPECT_EQ(read(text), "[" + text + "]");
  }
  EXPECT_EQ(read("<tool_call>\n<tool_call>\n{\"name\": \"now\"}\n</tool_call>"), "[<tool_call>] now({})");
}

TEST(ToolCalls, TagsAndBracesInsideAStringAreText) {
  EXPECT_EQ(read(hermes(R"({"name": "f", "arguments": {"a": "}</tool_call>{\"\\", "b": "<tool_call>"}})")),
            R"([] f({"a": "}</tool_call>{\"\\", "b": "<tool_call>"}))");
  EXPECT_EQ(read(hermes(R"({"x": "</tool_call>", "name": "f", "arguments": {}})")), "[] f({})");
}

TEST(ToolCalls, LineBreaksInsideAStringAreEscaped) {
  EXPECT_EQ(read(hermes("{\"name\": \"f\", \"arguments\": {\n  \"a\": \"x\n\ty\"\n}}")),
            "[] f({\n  \"a\": \"x\\n\\ty\"\n})");
}

TEST(ToolCalls, SmallSlipsBehindTheArgumentsDoNoHarm) {
  const std::string want = R"([] f({"a": 1}))";
  EXPECT_EQ(read("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}\n</tool_call>"), want);
  EXPECT_EQ(read(hermes(R"({"name": "f", "arguments": {"a": 1}}})")), want);
  EXPECT_EQ(read("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}"), want);
  EXPECT_EQ(read("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool"), want);
  EXPECT_EQ(read(hermes("{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n{\"name\": \"now\"}")),
            want + " now({})");
  EXPECT_EQ(
      read("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n" + hermes("{\"name\": \"now\"}")),
      want + " now({})");
}

TEST(ToolCalls, TheTagMayBeMissingWhereTheMessageBegins) {
  const std::string object = R"({"name": "get_weather", "arguments": {"city": "Rom"}})";
  const std::string want = R"([] get_weather({"city": "Rom"}))";
  const std::string again = R"( get_weather({"city": "Rom"}))";
  EXPECT_EQ(read(object), want);
  EXPECT_EQ(read("\n" + object + "\n" + object + "\n"), want + again);
  EXPECT_EQ(read("```json\n" + object + "\n```"), want);
  EXPECT_EQ(read("```json\n" + object + "\n```\n```\n" + object + "\n```\n"), want + again);
  EXPECT_EQ(read(object + "\n</tool_call>"), want);
  EXPECT_EQ(read(object + "\nThat is it."), "[That is it.]" + want.substr(2));
  for (const std::string text :
       {R"({"name": "unknown", "arguments": {}})", R"({"name": "get_weather"})", R"({"city": "Rom"})",
        R"({})", R"(So: {"name": "get_weather", "arguments": {}})", "```json\n[1]\n```",
        R"({"name": "get_weather", "id": 5)", "```python\nprint({})\n```", "``",
        "```json\n{\"name\": \"get_weather\"}\n```\n"}) {
    EXPECT_EQ(read(text), "[" + text + "]");
  }
  EXPECT_EQ(read(object, kXml), "[" + object + "]");
}

TEST(ToolCalls, WhereAMessageIsCallsOrContentWhatBeginsAsContentStaysIt) {
  const std::string call = R"(<tool_call>
{"name": "get_weather", "arguments": {"city": "Bern"}}
</tool_call>)";
  ToolCallOptions either = options();
  either.calls_or_content = true;
  const auto told = [&](const std::string& text) { return shown(parse_tool_calls(either, text)); };
  EXPECT_EQ(told(call + "\n" + call), R"([] get_weather({"city": "Bern"}) get_weather({"city": "Bern"}))");
  const std::string quoted = R"({"name": "get_weather", "arguments": {"city": "Bern"}})";
  EXPECT_EQ(told(quoted), "[" + quoted + "]") << "an object of a form that was asked for";
  EXPECT_EQ(told("[\"" + call + "\"]"), "[[\"" + call + "\"]]");
}

TEST(ToolCalls, ArgumentsThatBreakOnceBegunComeAsTheModelWroteThem) {
  EXPECT_EQ(read(hermes(R"({"name": "f", "arguments": {"a": "say "hi""}})") + " done"),
            R"([done] f({"a": "say "hi""}))");
  EXPECT_EQ(read(hermes(R"({"name": "f", "arguments": {"a": True}})")), R"([] f({"a": True}))");
}

TEST(ToolCalls, ACutCallIsOpenAndValidSoFar) {
  const std::string text = hermes(R"({"name": "f", "arguments": {"city": "Sao \"P\"", "n": [1, 2.5e3]}})");
  const std::string arguments = R"({"city": "Sao \"P\"", "n": [1, 2.5e3]})";
  int open = 0;
  for (size_t length = 0; length <= text.size(); ++length) {
    const ToolMessage message = parse_tool_calls(options(), text.substr(0, length));
    if (message.calls.empty()) {
      EXPECT_EQ(message.content, text.substr(0, length));
      continue;
    }
    EXPECT_EQ(message.content, "");
    EXPECT_TRUE(arguments.starts_with(message.calls[0].arguments)) << message.calls[0].arguments;
    open += message.open;
    EXPECT_TRUE(message.open || message.calls[0].arguments == arguments) << message.calls[0].arguments;
  }
  EXPECT_EQ(open,
            static_cast<int>(arguments.size()));  // and its last brace ends the object's value, not the call
}

/// What a text of `length` bytes that was cut gives.
std::string cut_at(const ToolCallOptions& how, const std::string& text, size_t length) {
  return shown(parse_tool_calls(how, text.substr(0, length), true));
}

TEST(ToolCalls, ACallThatIsCutBeforeItsArgumentsLeavesNoTag) {
  const std::string name = "<tool_call>\n{\"name\": \"f\"";
  const std::string head = name + ", \"arguments\": ";
  for (const std::string before : {"", "Well.\n"}) {
    const std::string content = before.empty() ? "" : "Well.";
    for (size_t length = std::string("<tool_call>").size(); length < name.size(); ++length)
      EXPECT_EQ(cut_at(options(), before + head, before.size() + length), "[" + content + "]") << length;
    for (size_t length = name.size() + 1; length <= head.size(); ++length)
      EXPECT_EQ(cut_at(options(), before + head, before.size() + length), "[" + content + "] f()...")
          << length;
  }
  EXPECT_EQ(cut_at(options(), "<tool_c", 7), "[<tool_c]") << "no tag yet: text may say it";
  EXPECT_EQ(cut_at(options(), "say <tool_call> and", 19), "[say <tool_call> and]");
  const std::string bare = R"({"name": "get_weather", "arg)";
  EXPECT_EQ(cut_at(options(), bare, bare.size()), "[] get_weather()...");
  EXPECT_EQ(cut_at(options(), bare, 12), R"([{"name": "ge])");
  const std::string block = "<tool_call>\n<function=get_weather>\n<par";
  EXPECT_EQ(cut_at(options(kXml), block, 30), "[]");
  EXPECT_EQ(cut_at(options(kXml), block, block.size()), "[] get_weather()...");
  EXPECT_EQ(cut_at(options(kXml), "<function=get_wea", 17), "[]");
  EXPECT_EQ(cut_at(options(kXml), "<function=set_wea", 17), "[<function=set_wea]");
}

TEST(ToolCalls, WhereTheMessageIsCallsAloneWhatIsCutOfThemIsNoContent) {
  const std::string one = hermes(R"({"name": "now", "arguments": {}})");
  const std::string text = one + "\n" + hermes(R"({"name": "f", "arguments": {"a": 1}})");
  const std::string xml = call_of(parameter("city", "Rom")) + "\n" + call_of(parameter("days", "2"));
  for (const ToolSyntax syntax : {ToolSyntax::hermes, kXml}) {
    ToolCallOptions demanded = options(syntax);
    demanded.calls_only = true;
    const std::string& all = syntax == kXml ? xml : text;
    for (size_t length = 0; length <= all.size(); ++length) {
      const ToolMessage message = parse_tool_calls(demanded, all.substr(0, length));
      EXPECT_EQ(message.content, "") << all.substr(0, length);
      EXPECT_GE(message.calls.size(), length >= all.size() / 2 ? 1U : 0U);
    }
  }
}

TEST(ToolCalls, ACallOfAToolThatIsHeldToItsSchemaHasTheFormThatTheGrammarHolds) {
  const std::string object = R"({"name": "get_weather", "arguments": {"city": 5}})";
  const std::string now = R"({"name": "now", "arguments": {}})";
  ToolCallOptions strict = options();
  strict.tools[0].held_to_schema = true;
  const auto told = [&](const std::string& text) { return shown(parse_tool_calls(strict, text)); };
  for (const std::string& text :
       {object, "```json\n" + object + "\n```", "```\n" + object + "\n```", "\n" + object})
    EXPECT_EQ(told(text), "[] get_weather({\"city\": 5})") << text;
  const std::string turned = R"({"arguments": {"city": 5}, "name": "get_weather"})";
  EXPECT_EQ(told(turned), "[" + turned + "]") << "which no grammar holds";
  EXPECT_EQ(told(hermes(object)), "[] get_weather({\"city\": 5})");
  EXPECT_EQ(told(now), "[] now({})") << "not held to any";
  EXPECT_EQ(told(now + "\n" + object), "[" + object + "] now({})");
  strict.syntax = kXml;
  const std::string function = "<function=get_weather>\n<parameter=city>\nRom\n</parameter>\n</function>";
  EXPECT_EQ(told(function), "[" + function + "]");
  EXPECT_EQ(told("<tool_call>\n" + function + "\n</tool_call>"), "[] get_weather({\"city\": \"Rom\"})");
}

TEST(ToolCalls, Qwen3CoderParametersBecomeJsonOfTheirTypes) {
  EXPECT_EQ(read(call_of(parameter("city", "New York") + parameter("days", "3"))),
            "[" + call_of(parameter("city", "New York") + parameter("days", "3")) + "]");
  const auto json = [](const std::string& name, const std::string& value) {
    const ToolMessage message = parse_tool_calls(options(kXml), call_of(parameter(name, value)));
    if (message.calls.size() != 1 || message.open || !message.content.empty()) return "? " + shown(message);
    return Json::parse(message.calls[0].arguments)[name].dump();
  };
  EXPECT_EQ(json("city", "New \"York\""), R"("New \"York\"")");
  EXPECT_EQ(json("city", "5"), R"("5")");
  EXPECT_EQ(json("city", ""), R"("")");
  EXPECT_EQ(json("city", " two\n\nlines\n"), R"(" two\n\nlines\n")");
  EXPECT_EQ(json("city", "null"), "null");
  EXPECT_EQ(json("city", "nullable"), R"("nullable")");
  EXPECT_EQ(json("city", "<b>a</b>\n<p"), R"("<b>a</b>\n<p")");
  EXPECT_EQ(json("days", "3"), "3");
  EXPECT_EQ(json("days", " -3 "), "-3");
  EXPECT_EQ(json("days", "3.0"), "3");
  EXPECT_EQ(json("days", "3.5"), R"("3.5")");
  EXPECT_EQ(json("days", "three"), R"("three")");
  EXPECT_EQ(json("days", "Null"), "null");
  EXPECT_EQ(read(call_of(parameter("days", "-123456789012345678901234567890")), kXml),
            "[] get_weather({\"days\": -123456789012345678901234567890})");
  EXPECT_EQ(json("limit", "2.5"), "2.5");
  EXPECT_EQ(json("limit", "2.0"), "2");
  EXPECT_EQ(json("metric", "True"), "true");
  EXPECT_EQ(json("metric", "false"), "false");
  EXPECT_EQ(json("metric", "yes"), R"("yes")");
  EXPECT_EQ(json("tags", R"(["a", "b"])"), R"(["a","b"])");
  EXPECT_EQ(json("tags", "a, b"), R"("a, b")");
  EXPECT_EQ(json("where", "{\"x\": {\n\"y\": 1}}"), R"({"x":{"y":1}})");
  EXPECT_EQ(json("place", R"({"x": 1})"), R"({"x":1})");
  EXPECT_EQ(json("id", "12"), "12");
  EXPECT_EQ(json("id", "a12"), R"("a12")");
  EXPECT_EQ(json("note", "12"), R"("12")");
  EXPECT_EQ(json("unit", "C"), R"("C")");
  EXPECT_EQ(json("unknown", "12"), R"("12")");
}

TEST(ToolCalls, Qwen3CoderBlocks) {
  EXPECT_EQ(read(call_of(parameter("city", "Rom") + parameter("days", "2")), kXml),
            R"([] get_weather({"city": "Rom", "days": 2}))");
  EXPECT_EQ(
      read("I see.\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>\nAnd\n" + call_of(""), kXml),
      "[I see.\nAnd] now({}) get_weather({})");
  // As models slip: no closing tags of parameters, none of the block, none that opens it.
  EXPECT_EQ(read("<tool_call>\n<function=get_weather>\n<parameter=city>\nRom\n<parameter=days>\n2\n</"
                 "function>\n</tool_call>",
                 kXml),
            R"([] get_weather({"city": "Rom", "days": 2}))");
  EXPECT_EQ(read("<function=get_weather>\n<parameter=city>Rom</parameter>\n</function>\n</tool_call>", kXml),
            R"([] get_weather({"city": "Rom"}))");
  EXPECT_EQ(read("<tool_call><function=now></function><function=now></function></tool_call>x", kXml),
            "[x] now({}) now({})");
  for (const std::string text :
       {"call <function=unknown> here", "<tool_call>\n{\"name\": \"now\"}\n</tool_call>",
        "<tool_call>\n<function=a b>\n</function>", "<function=>"}) {
    EXPECT_EQ(read(text, kXml), "[" + text + "]");
  }
}

TEST(ToolCalls, ACutQwen3CoderCallIsOpenAndValidSoFar) {
  const std::string text = call_of(parameter("city", "a\n</b> \"ü\"") + parameter("days", "12"));
  const std::string arguments = R"({"city": "a\n</b> \"ü\"", "days": 12})";
  ASSERT_EQ(read(text, kXml), "[] get_weather(" + arguments + ")");
  int open = 0;
  for (size_t length = 0; length <= text.size(); ++length) {
    const ToolMessage message = parse_tool_calls(options(kXml), text.substr(0, length));
    if (message.calls.empty()) continue;
    const std::string so_far = message.calls[0].arguments;
    const size_t whole = so_far.size() - static_cast<size_t>(incomplete_utf8_suffix(so_far));
    EXPECT_TRUE(arguments.starts_with(so_far.substr(0, whole))) << so_far;
    EXPECT_EQ(message.content, "");
    open += message.open;
  }
  EXPECT_GT(open, 50);
}

TEST(ToolCalls, WithoutParallelCallsOnlyTheFirstIsGiven) {
  ToolCallOptions one = options();
  one.parallel = false;
  const std::string text =
      "a\n" + hermes(R"({"name": "now"})") + "\n" + hermes(R"({"name": "f", "arguments": {"a": 1}})");
  EXPECT_EQ(shown(parse_tool_calls(one, text)), "[a] now({})");
}

TEST(ToolCalls, ArgumentsAreStreamedAsTheyAppear) {
  ToolCallParser parser(options());
  using Kind = ToolTextPart::Kind;
  using Parts = std::vector<ToolTextPart>;
  EXPECT_EQ(parser.push("Well.\n<tool_call>\n{\"name\": \"f\", \"arg"),
            (Parts{{Kind::content, -1, "Well."}}));
  EXPECT_EQ(parser.push("uments\": {\"te"), (Parts{{Kind::call, 0, "f"}, {Kind::arguments, 0, "{\"te"}}));
  EXPECT_EQ(parser.push("xt\": \"\xC3"), (Parts{{Kind::arguments, 0, "xt\": \""}}));
  EXPECT_EQ(parser.push("\xBC"), (Parts{{Kind::arguments, 0, "\xC3\xBC"}}));
  EXPECT_TRUE(parser.open());
  EXPECT_EQ(parser.push("\"}}\n</tool_"), (Parts{{Kind::arguments, 0, "\"}"}}));
  EXPECT_FALSE(parser.open());
  EXPECT_EQ(parser.push("call>\n"), Parts{});
  EXPECT_EQ(parser.finish(), Parts{});
}

TEST(ToolCalls, LongStringsOfTagsAreReadInTime) {
  std::string nested;
  for (int i = 0; i < 4000; ++i) nested += "<tool_call>{\"name\": \"";
  EXPECT_EQ(parse_tool_calls(options(), nested).content, nested);
  std::string deep = "<tool_call>{\"name\": \"f\", \"arguments\": " + std::string(100000, '[');
  EXPECT_EQ(parse_tool_calls(options(), deep).content, deep);
  std::string functions;
  for (int i = 0; i < 4000; ++i) functions += "<function=now";
  EXPECT_EQ(parse_tool_calls(options(kXml), functions).content, functions);
}

/// A random text of calls, things like calls, and text.
std::string random_text(std::mt19937& random) {
  const std::vector<std::string> pieces = {
      "<tool_call>",
      "</tool_call>",
      "\n",
      "{\"name\": \"now\"",
      ", \"arguments\": ",
      "{\"a\": \"b\"}",
      "}",
      "{",
      "\"",
      "\\",
      "ü",
      "日本",
      "😀",
      " ",
      "text",
      "<",
      "<tool",
      "null",
      "<function=now>",
      "<function=get_weather>",
      "<parameter=city>",
      "<parameter=days>",
      "7",
      "</parameter>",
      "</function>",
      "<parameter=",
      "</",
      "```json\n",
      "```",
      R"({"name": "get_weather", "arguments": {"city": "Rom"}})",
      ">",
      "\t",
      hermes(R"({"name": "get_weather", "arguments": {"city": "a</tool_call>ü", "n": [1, {"x": null}]}})"),
      hermes(R"({"arguments": "{\"a\": 1}", "name": "f"})"),
      hermes(R"({"name": "f", "arguments": {"a": nope}})"),
      hermes("{\"name\": \"f\", \"arguments\": {\"a\": \"x\ny\"}"),
      call_of(parameter("city", "x\n</p\n\nü") + parameter("days", "7")),
      call_of(parameter("where", "{\"x\": [1]}") + parameter("city", "null")),
      "<function=now>\n</function>"};
  std::string text;
  const size_t count = random() % 12;
  for (size_t i = 0; i < count; ++i) text += pieces[random() % pieces.size()];
  if (random() % 3 == 0 && !text.empty()) text.resize(random() % text.size());
  return to_valid_utf8(text);
}

TEST(ToolCalls, PiecesJoinToTheWholeHoweverTheTextIsChopped) {
  std::mt19937 random(7);
  int with_calls = 0;
  int chopped = 0;
  const int texts = test::kSanitized ? 600 : 3000;
  for (int i = 0; i < texts; ++i) {
    const ToolSyntax syntax = i % 2 == 0 ? ToolSyntax::hermes : kXml;
    ToolCallOptions how = options(syntax);
    how.parallel = random() % 4 != 0;
    how.tools[0].held_to_schema = random() % 2 == 0;
    const bool cut = random() % 2 == 0;
    const std::string text = random_text(random);
    const std::string whole = shown(parse_tool_calls(how, text, cut));
    with_calls += whole.find("(") != std::string::npos;
    std::vector<size_t> each_byte;
    for (size_t at = 1; at < text.size(); ++at) each_byte.push_back(at);
    std::vector<size_t> cuts;
    for (const size_t at : each_byte) {
      if (random() % 5 == 0) cuts.push_back(at);
    }
    for (const auto& pieces : {each_byte, cuts}) {
      ASSERT_EQ(shown(in_pieces(how, text, pieces, cut)), whole) << "of " << text;
      ++chopped;
    }
    if (!cut && whole.find('(') == std::string::npos) {
      ASSERT_EQ(whole, "[" + text + "]");
    }
  }
  EXPECT_GT(with_calls, texts / 6);
  std::cout << "tool calls: " << chopped << " choppings, " << with_calls << " of " << texts
            << " texts with calls\n";
}

TEST(ToolCalls, TheTemplateTellsTheSyntax) {
  const auto of = [](const std::string& source) { return tool_syntax(ChatTemplate::parse(source, "test")); };
  EXPECT_EQ(of("{% for m in messages %}{{ m.content }} tools{% endfor %}{# tools #}"), std::nullopt);
  EXPECT_EQ(of("{% if tools %}<tool_call>{% endif %}"), ToolSyntax::hermes);
  EXPECT_EQ(of("{% if not tools is defined %}{% set tools = [] %}{% endif %}<function=a><parameter=b>"),
            kXml);
}

}  // namespace
}  // namespace qwench
