#include <gtest/gtest.h>

#include <string>

#include "text/chat_template.h"

namespace qwench {
namespace {

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

/// A tenth of the default budgets, so that running out of them takes no time.
constexpr RenderLimits kSmall{
    .max_output = size_t{4} << 20, .max_memory = size_t{50} << 20, .max_steps = 2'000'000};

/// How a template fails; a template that does not is a failure of the test.
TemplateErrorKind failure_of(const std::string& source, const RenderLimits& limits = kSmall) {
  ChatTemplateInput input;
  input.messages = Json::array({{{"role", "user"}, {"content", std::string(1000, 'x')}}});
  std::string text;
  try {
    text = ChatTemplate::parse(source, "hostile").render(input, limits).text;
  } catch (const TemplateError& error) {
    EXPECT_GE(error.line(), 1);
    EXPECT_GE(error.column(), 1);
    return error.template_kind();
  }
  ADD_FAILURE() << source.substr(0, 200) << "\ngave " << text.size() << " bytes: " << text.substr(0, 100);
  return TemplateErrorKind::other;
}

TEST(JinjaLimits, DeepNestingInTheSourceIsASyntaxError) {
  for (const std::string& source : {
           "{{ " + repeat("(", 20000) + "1" + repeat(")", 20000) + " }}",
           "{{ " + repeat("(", 20000),
           "{{ " + repeat("[", 20000),
           "{{ " + repeat("{1:", 20000),
           "{{ " + repeat("not ", 20000) + "1 }}",
           "{{ " + repeat("-", 20000) + "1 }}",
           "{{ " + repeat("x if y else ", 20000) + "1 }}",
           "{{ x" + repeat("(x", 20000),
           "{{ x" + repeat("[x", 20000),
           "{{ x" + repeat(".a", 20000) + " }}",
           "{{ x" + repeat("|e", 20000) + " }}",
           "{{ 1" + repeat(" + 1", 20000) + " }}",
           "{{ 1" + repeat(" ** 1", 20000) + " }}",
           "{{ 1" + repeat(" and 1", 20000) + " }}",
           "{{ x" + repeat(" is defined", 1) + repeat("()", 20000) + " }}",
           repeat("{% if 1 %}", 20000),
           repeat("{% for x in y %}", 20000),
           repeat("{% macro m() %}", 20000),
           "{% for " + repeat("(", 20000) + "x in y %}",
           "{% set " + repeat("(", 20000) + "x = 1 %}",
           "{{ " + std::string(5000, '9') + " }}",
       }) {
    EXPECT_EQ(failure_of(source), TemplateErrorKind::syntax) << source.substr(0, 60);
  }
}

TEST(JinjaLimits, WhatATextIsCutIntoCountsAsItIsCut) {
  for (const char* source : {
           "{% set a = 'x ' * 2000000 %}{{ a.split()|length }}",
           "{% set a = 'x ' * 2000000 %}{{ a.rsplit(' ')|length }}",
           "{% set a = 'x\n' * 2000000 %}{{ a.splitlines()|length }}",
           "{% set a = 'x' * 4000000 %}{{ a|sort|length }}",
           "{% set a = 'x' * 4000000 %}{{ a|list|length }}",
           "{% set a = ' ' * 4000000 %}{{ a|urlencode|length }}",
           "{% set a = 'xyz ' * 1000000 %}{{ a|pprint|length }}",
       }) {
    EXPECT_EQ(failure_of(source), TemplateErrorKind::limit) << source;
  }
}

TEST(JinjaLimits, LongFlatSourcesAreFine) {
  const auto renders = [](const std::string& source) {
    return ChatTemplate::parse(source, "long").render({}).text.size();
  };
  EXPECT_EQ(renders("{{ 'a'" + repeat(" ~ 'a'", 10000) + " }}"), 10001U);
  EXPECT_EQ(renders("{% set x = 1 %}" + repeat("{% if x %}a{% endif %}", 20000)), 20000U);
  EXPECT_EQ(renders("{% if 0 %}" + repeat("{% elif 0 %}b", 10000) + "{% else %}a{% endif %}"), 1U);
  EXPECT_EQ(renders(repeat("{ ", 100000)), 200000U);
}

TEST(JinjaLimits, StringsCannotOutgrowTheLimit) {
  for (
      const std::string source : {
          "{{ 'a' * 1000000000 }}",
          "{{ 'a' * 9223372036854775807 }}",
          "{{ 1000000000 * 'ab' }}",
          "{{ '' | center(1000000000) }}",
          "{{ 'a'.ljust(1000000000) }}",
          "{{ 'a'.rjust(9223372036854775807) }}",
          "{{ 'a'.zfill(1000000000) }}",
          "{{ 'a\tb'.expandtabs(1000000000) }}",
          "{{ 'a\nb' | indent(1000000000) }}",
          "{{ '%1000000000d' % 1 }}",
          "{{ '%*d' % (1000000000, 1) }}",
          "{{ '%.1000000000d' % 1 }}",
          "{{ '{:1000000000}'.format(1) }}",
          "{{ '{:>1000000000}'.format('x') }}",
          "{{ [1] | tojson(indent=1000000000) }}",
          "{% set s = 'a' * 3000 %}{{ s.replace('a', s) }}",
          "{% set s = 'a' * 3000 %}{{ s | replace('', s) }}",
          "{% set s = 'a' * 3000 %}{{ s.join(s) }}",
          "{% set s = 'a' * 3000 %}{{ s | join(s) }}",
          "{% set s = '{0}' * 3000 %}{{ s.format('a' * 3000) }}",
          "{% set s = '%(a)s' * 3000 %}{{ s % {'a': 'b' * 3000} }}",
          "{% set ns = namespace(s='aa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
          "{% set ns = namespace(s='aa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
          "{% for i in range(100000) %}{{ messages }}{% endfor %}",
          "{% for i in range(100000) %}{% for j in range(100000) %}a{% endfor %}{% endfor %}",
          "{% set x %}{% for i in range(100000) %}{{ messages }}{% endfor %}{% endset %}",
          "{% filter upper %}{% for i in range(100000) %}{{ messages }}{% endfor %}{% endfilter %}",
          "{% macro m(n) %}{% for i in range(3000) %}{{ messages }}{% endfor %}{{ m(n) }}{% endmacro %}{{ "
          "m(1) }}",
      }) {
    EXPECT_EQ(failure_of(source), TemplateErrorKind::limit) << source;
  }
}

TEST(JinjaLimits, ListsCannotOutgrowTheMemory) {
  for (const std::string source : {
           "{{ [0] * 1000000000 }}",
           "{{ [0, 1] * 9223372036854775807 }}",
           "{{ (0,) * 100000000 }}",
           "{{ [1] | batch(1000000000, 0) | list }}",
           "{{ [1] | slice(1000000000) | list }}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor "
           "%}{{ ns.l }}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor "
           "%}{{ ns.l | tojson }}",
           "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% "
           "set ns.m = [ns.m, ns.m] %}"
           "{% endfor %}{{ ns.l == ns.m }}",
           "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l, range(100000) | "
           "list] %}{% endfor %}",
       }) {
    EXPECT_EQ(failure_of(source), TemplateErrorKind::limit) << source;
  }
}

TEST(JinjaLimits, RecursionEnds) {
  for (const std::string source : {
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(n) %}{% if n %}{% for x in [1] %}{{ m(n + 1) }}{% endfor %}{% endif %}{% endmacro "
           "%}{{ m(1) }}",
           "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
           "{% block a %}{{ self.a() }}{% endblock %}",
           "{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{% call m() %}{% endcall "
           "%}",
           "{% macro a() %}{{ caller() }}{% endmacro %}{% macro b() %}{% call a() %}{{ b() }}{% endcall %}{% "
           "endmacro %}{{ b() }}",
       }) {
    EXPECT_EQ(failure_of(source), TemplateErrorKind::limit) << source;
  }
}

TEST(JinjaLimits, DeepValuesDoNotExhaustTheStack) {
  // Built without any of these being refused; printing and comparing them is what fails.
  const std::string nest =
      "{% set ns = namespace(l=[], m=[]) %}{% for i in range(20000) %}{% set ns.l = [ns.l] %}{% set ns.m = "
      "[ns.m] %}{% endfor %}";
  EXPECT_EQ(ChatTemplate::parse(nest + "ok", "deep").render({}).text, "ok");
  EXPECT_EQ(failure_of(nest + "{{ ns.l }}"), TemplateErrorKind::limit);
  EXPECT_EQ(failure_of(nest + "{{ ns.l | tojson }}"), TemplateErrorKind::limit);
  EXPECT_EQ(failure_of(nest + "{{ ns.l | pprint }}"), TemplateErrorKind::limit);
  EXPECT_EQ(failure_of(nest + "{{ ns.l == ns.m }}"), TemplateErrorKind::limit);
  EXPECT_EQ(failure_of(nest + "{{ ns.l < ns.m }}"), TemplateErrorKind::limit);
  const auto renders = [](const std::string& body) {
    return ChatTemplate::parse(
               "{% set ns = namespace(x=none) %}{% for i in range(20000) %}" + body + "{% endfor %}ok",
               "deep")
        .render({})
        .text;
  };
  EXPECT_EQ(renders("{% set ns.x = {'a': ns.x} %}"), "ok");
  EXPECT_EQ(renders("{% set ns.x = namespace(x=ns.x) %}"), "ok");
  EXPECT_EQ(renders("{% set ns.x = joiner(ns.x) %}"), "ok");
  EXPECT_EQ(renders("{% set ns.x = cycler(ns.x) %}"), "ok");
  EXPECT_EQ(renders("{% set ns.x = [ns.x].index %}"), "ok");
  EXPECT_EQ(renders("{% set ns.x = [ns.x] | map('default', ns.x) %}"), "ok");
  EXPECT_EQ(renders("{% set ns.x = (ns.x or []) | select %}"), "ok");
  EXPECT_EQ(renders("{% macro m(a) %}{% macro n() %}{{ a }}{% endmacro %}{% set ns.x = n %}{% endmacro %}{% "
                    "set _ = m(ns.x) %}"),
            "ok");
  EXPECT_EQ(failure_of("{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}{% set ns.x = ns.x | "
                       "select %}{% endfor %}{{ ns.x | list }}"),
            TemplateErrorKind::limit);
}

TEST(JinjaLimits, CyclesAreCollected) {  // the leak checker of the sanitizer build judges it
  const std::string source =
      "{% set ns = namespace(a=1) %}{% set ns.self = ns %}{% set ns.list = [ns, ns.self] %}"
      "{% macro m() %}{{ ns.a }}{% endmacro %}{% set ns.m = m %}"
      "{% for x in [1, 2] %}{% set _ = loop.changed(loop) %}{% set ns.loop = loop %}{% macro n() %}{{ x }}{% "
      "endmacro %}{% set ns.n = n %}{% endfor %}ok";
  EXPECT_EQ(ChatTemplate::parse(source, "cycles").render({}).text, "ok");
}

TEST(JinjaLimits, NumbersStayBounded) {
  for (const std::string source : {
           "{{ 10 ** 1000000000 }}",
           "{{ 2 ** 9223372036854775807 }}",
           "{{ 2 ** (2 ** 70) }}",
           "{% set ns = namespace(n=2) %}{% for i in range(100) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
       }) {
    EXPECT_EQ(failure_of(source), TemplateErrorKind::limit) << source;
  }
  EXPECT_EQ(failure_of("{{ 10 ** 5000 }}"), TemplateErrorKind::other);  // Python, too, refuses to print it
  EXPECT_EQ(ChatTemplate::parse("{{ (10 ** 5000) // (10 ** 4999) }}", "big").render({}).text, "10");
}

TEST(JinjaLimits, EachBudgetCanBeSet) {
  EXPECT_EQ(failure_of("{% for i in range(1000) %}{% endfor %}", {.max_steps = 500}),
            TemplateErrorKind::limit);
  EXPECT_EQ(failure_of("{{ 'a' * 101 }}", {.max_output = 100}), TemplateErrorKind::limit);
  EXPECT_EQ(failure_of("{{ 'a' * 60 }}{{ 'b' * 60 }}", {.max_output = 100}), TemplateErrorKind::limit);
  EXPECT_EQ(failure_of("{{ range(10000) | list | length }}", {.max_memory = 300000}),
            TemplateErrorKind::limit);
  EXPECT_EQ(failure_of("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(20) }}",
                       {.max_depth = 10}),
            TemplateErrorKind::limit);
  const std::string fits = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}x{% endmacro %}{{ m(100) }}";
  EXPECT_EQ(ChatTemplate::parse(fits, "fits").render({}).text.size(), 101U);
}

TEST(JinjaLimits, SearchingIsNotQuadratic) {
  EXPECT_EQ(ChatTemplate::parse("{% set a = 'a' * 1000000 %}{% set b = 'a' * 500000 ~ 'b' %}{{ b in a }}{{ "
                                "a.find(b) }}{{ a.count('aa') }}",
                                "search")
                .render({})
                .text,
            "False-1500000");
}

TEST(JinjaLimits, WorkOnLongStringsIsPaidFor) {
  for (const char* operation :
       {"a.strip()", "a.rstrip('x')", "a|trim", "a.rsplit(none, 1)", "a.expandtabs()", "a|urlencode",
        "a|striptags", "{a: 1}[a]", "a|default(1)", "a.upper()", "a is lower", "a in a", "'%s' % a",
        "a == a ~ ''", "[a, a]|min", "a.splitlines()", "a|replace('x', 'y')", "a.partition('q')"}) {
    EXPECT_EQ(
        failure_of(std::string("{% set a = ' ' * 300000 ~ 'x' %}{% for i in range(99999) %}{% set b = ") +
                   operation + " %}{% endfor %}"),
        TemplateErrorKind::limit)
        << operation;
  }
}

}  // namespace
}  // namespace qwench
