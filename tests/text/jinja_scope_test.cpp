#include <gtest/gtest.h>

#include <string>

#include "text/chat_template.h"

namespace qwench {
namespace {

std::string render_with(const std::string& source, const Json& kwargs = Json::object()) {
  ChatTemplateInput input;
  input.kwargs = kwargs;
  return ChatTemplate::parse(source, "scope").render(input).text;
}

TEST(JinjaScope, LoopsDoNotLeakAssignments) {
  EXPECT_EQ(render_with("{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}"), "21");
  EXPECT_EQ(render_with("{% for i in [1] %}{% set x = 2 %}{% endfor %}[{{ x }}]"), "[]");
}

TEST(JinjaScope, EachPassOfALoopBeginsAnew) {
  EXPECT_EQ(render_with(
                "{% for i in [1, 2] %}{% if i == 1 %}{% set x = 'first' %}{% endif %}[{{ x }}]{% endfor %}"),
            "[first][]");
  EXPECT_EQ(render_with("{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{% endfor %}"), "00");
}

TEST(JinjaScope, IfDoesNotMakeAScope) {
  EXPECT_EQ(render_with("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
}

TEST(JinjaScope, AnAssignmentOnOneBranchKeepsThePassedValueOnTheOther) {
  EXPECT_EQ(render_with("{% if y %}{% set x = 1 %}{% endif %}{{ x }}", {{"x", 5}, {"y", false}}), "5");
  EXPECT_EQ(render_with("{% if y %}{% set x = 1 %}{% endif %}{{ x }}", {{"x", 5}, {"y", true}}), "1");
}

TEST(JinjaScope, ANameAssignedLaterIsNotYetThePassedValue) {
  // Jinja decides by the order in the source: what is assigned before it is read does not begin as the
  // variable that was passed in.
  EXPECT_EQ(
      render_with("{% macro f() %}[{{ x }}]{% endmacro %}{{ f() }}{% set x = 1 %}{{ f() }}", {{"x", 5}}),
      "[][1]");
  EXPECT_EQ(render_with("{{ x }}{% set x = 1 %}{{ x }}", {{"x", 5}}), "51");
}

TEST(JinjaScope, MacrosSeeTheVariablesOfTheirPlaceAtTheTimeOfTheCall) {
  EXPECT_EQ(
      render_with("{% set x = 1 %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% set x = 2 %}{{ f() }}"),
      "12");
  EXPECT_EQ(render_with("{% macro f() %}{% set x = 9 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{{ x }}"),
            "91");
}

TEST(JinjaScope, WithEvaluatesItsValuesOutside) {
  EXPECT_EQ(render_with("{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}"), "211");
}

TEST(JinjaScope, DefaultsOfMacrosSeeEarlierParameters) {
  EXPECT_EQ(render_with("{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}"), "1112");
}

TEST(JinjaScope, TheTestOfALoopRunsBetweenItsPasses) {
  EXPECT_EQ(
      render_with("{% set ns = namespace(seen=[]) %}{% for x in [1, 2, 1] if x not in ns.seen %}{{ x }}{% "
                  "set ns.seen = ns.seen + [x] %}{% endfor %}"),
      "12");
}

TEST(JinjaScope, ElseOfALoopRunsUnlessAPassWasCompleted) {
  EXPECT_EQ(render_with("{% for x in [] %}a{% else %}b{% endfor %}"), "b");
  EXPECT_EQ(render_with("{% for x in [1] %}a{% else %}b{% endfor %}"), "a");
  EXPECT_EQ(render_with("{% for x in [1] %}a{% break %}{% else %}b{% endfor %}"), "ab");
}

TEST(JinjaScope, RecursiveLoopsKeepTheirOwnVariables) {
  const Json tree = Json::parse(R"([{"n":"a","c":[{"n":"b","c":[]},{"n":"c","c":[]}]},{"n":"d","c":[]}])");
  EXPECT_EQ(
      render_with(
          "{% for t in tree recursive %}{{ loop.depth }}{{ t.n }}({{ loop(t.c) }}){{ t.n }}{% endfor %}",
          {{"tree", tree}}),
      "1a(2b()b2c()c)a1d()d");
}

TEST(JinjaScope, BlocksSeeTheTopLevelOnly) {
  EXPECT_EQ(
      render_with("{% set a = 1 %}{% for i in [7] %}{% block b %}{{ a }}[{{ i }}]{% endblock %}{% endfor %}"),
      "1[]");
  EXPECT_EQ(render_with("{% for i in [7] %}{% block b scoped %}[{{ i }}]{% endblock %}{% endfor %}"), "[7]");
  EXPECT_EQ(render_with("{% block b %}x{% endblock %}{{ self.b() }}"), "xx");
}

TEST(JinjaScope, BreakDoesNotReachThroughAFunction) {
  for (const std::string source :
       {"{% break %}", "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
        "{% for x in [1] %}{% generation %}{% continue %}{% endgeneration %}{% endfor %}"}) {
    EXPECT_THROW(render_with(source), TemplateError) << source;
  }
  EXPECT_EQ(
      render_with("{% for x in [1, 2] %}{% with y = x %}{% if y == 1 %}{% continue %}{% endif %}{{ y }}{% "
                  "endwith %}{% endfor %}"),
      "2");
}

TEST(JinjaScope, FiltersMustExistUnlessAnIfGuardsThem) {
  EXPECT_THROW(render_with("{% for x in [] %}{{ x | nosuch }}{% endfor %}"), TemplateError);
  EXPECT_EQ(render_with("{% if 'nosuch' is filter %}{{ x | nosuch }}{% else %}fine{% endif %}"), "fine");
}

}  // namespace
}  // namespace qwench
