#include "grammar/gbnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "qwench/error.h"

namespace qwench {
namespace {

std::string error_in_grammar(const std::string& text) {
  try {
    compile_gbnf(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Gbnf, Arithmetic) {
  const auto grammar = compile_gbnf(R"gbnf(
# an expression
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf");
  EXPECT_TRUE(accepts(*grammar, "a+1=b\n"));
  EXPECT_TRUE(accepts(*grammar, "(a+(b*2))/c = 7 \nx=y\n"));
  EXPECT_FALSE(accepts(*grammar, "(a+(b*2)/c = 7\n"));
  EXPECT_FALSE(accepts(*grammar, "a=b"));
}

TEST(Gbnf, EscapesClassesCountsAndComments) {
  const auto grammar = compile_gbnf(
      "root ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]{2,3} \"\\u00e9\\U0001F603\" . rest? # the end\n"
      "rest ::= [a\\-\\]] |\n  \"z\"{2}\n");
  EXPECT_TRUE(accepts(*grammar, "\"abé😃!"));
  EXPECT_TRUE(accepts(*grammar, "\"abcé😃中]"));
  EXPECT_TRUE(accepts(*grammar, "\"中中é😃.zz"));
  EXPECT_FALSE(accepts(*grammar, "\"aé😃."));
  EXPECT_FALSE(accepts(*grammar, "\"abé😃.z"));
}

TEST(Gbnf, RecursionNests) {
  const auto grammar = compile_gbnf("root ::= \"(\" root \")\" | \"x\"");
  EXPECT_TRUE(accepts(*grammar, std::string(200, '(') + "x" + std::string(200, ')')));
  EXPECT_FALSE(accepts(*grammar, std::string(200, '(') + "x" + std::string(199, ')')));
  // Deeper than the limit a text cannot go, and there is still a way to end it.
  EXPECT_FALSE(accepts(*grammar, std::string(300, '(') + "x" + std::string(300, ')')));
}

TEST(Gbnf, RecursionAtTheEndGoesOnWithoutEnd) {
  const auto grammar = compile_gbnf("root ::= \"a\" root | \"b\"");
  EXPECT_TRUE(accepts(*grammar, std::string(5000, 'a') + "b"));
}

TEST(Gbnf, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_THAT(error_in_grammar("x ::= \"a\""), testing::HasSubstr("no rule \"root\""));
  EXPECT_THAT(error_in_grammar("root ::= a"), testing::HasSubstr("\"a\" is used but not defined"));
  EXPECT_THAT(error_in_grammar("root ::= \"a\"\nroot ::= \"b\""),
              testing::HasSubstr("line 2: the rule \"root\" is defined twice"));
  EXPECT_THAT(error_in_grammar("root ::= \"a"), testing::HasSubstr("not closed"));
  EXPECT_THAT(error_in_grammar("root ::= (\"a\""), testing::HasSubstr("a ) is missing"));
  EXPECT_THAT(error_in_grammar("root = \"a\""), testing::HasSubstr("expected ::="));
  EXPECT_THAT(error_in_grammar("root ::= \"a\" }"), testing::HasSubstr("found '}'"));
  EXPECT_THAT(error_in_grammar("root ::= <think>"), testing::HasSubstr("tokens"));
  EXPECT_THAT(error_in_grammar("root ::= \"\\q\""), testing::HasSubstr("escape"));
  EXPECT_THAT(error_in_grammar(""), testing::HasSubstr("root"));
}

TEST(Gbnf, LeftRecursionIsRefused) {
  EXPECT_THAT(error_in_grammar("root ::= root \"a\" | \"b\""), testing::HasSubstr("left-recursive"));
  EXPECT_THAT(error_in_grammar("root ::= a \"x\"\na ::= b?  root | \"y\"\nb ::= \"z\"*"),
              testing::HasSubstr("left-recursive"));
  EXPECT_THAT(error_in_grammar("root ::= e e root | \"b\"\ne ::= f*\nf ::= \"\" | e"),
              testing::HasSubstr("left-recursive"));
}

TEST(Gbnf, ALanguageWithoutTextsIsRefused) {
  EXPECT_THAT(error_in_grammar("root ::= \"a\" root"), testing::HasSubstr("no text satisfies"));
}

}  // namespace
}  // namespace qwench
