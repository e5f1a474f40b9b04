#include <gtest/gtest.h>

#include <string>

#include "text/chat_template.h"

namespace qwench {
namespace {

const char* const kContent = "<|im_end|> \xC3\x9Cser <b>'x'</b> line\nnext";

/// The rendered text with what did not come from the template alone in guillemets.
std::string marked(const std::string& source) {
  ChatTemplateInput input;
  input.messages = Json::array({{{"role", "user"}, {"content", kContent}, {"n", 5}, {"tags", {"a", "b"}}}});
  input.kwargs = {{"date", "today"}};
  input.bos_token = "<s>";
  const RenderedPrompt prompt = ChatTemplate::parse(source, "provenance").render(input);
  std::string out;
  size_t at = 0;
  const auto input_text = [&](size_t end) {
    if (at < end) out += "\xC2\xAB" + prompt.text.substr(at, end - at) + "\xC2\xBB";
  };
  for (const ByteSpan& span : prompt.trusted) {
    input_text(span.begin);
    out += prompt.text.substr(span.begin, span.end - span.begin);
    at = span.end;
  }
  input_text(prompt.text.size());
  return out;
}

/// Does any byte of the input appear as the template's own?
bool trusts_input(const std::string& source) {
  ChatTemplateInput input;
  input.messages = Json::array({{{"role", "\u2603\u2603"},
                                 {"content", "\u2603 \u2603\n\u2603"}}});  // a character that no template has
  const RenderedPrompt prompt = ChatTemplate::parse(source, "provenance").render(input);
  for (const ByteSpan& span : prompt.trusted) {
    if (prompt.text.substr(span.begin, span.end - span.begin).find("\u2603") != std::string::npos)
      return true;
  }
  return prompt.text.find("\u2603") == std::string::npos;  // then it shows nothing
}

TEST(JinjaProvenance, TextOfTheTemplateIsTrustedAndMessagesAreNot) {
  EXPECT_EQ(marked("<|im_start|>{{ messages[0].role }}\n{{ messages[0].tags[0] }}<|im_end|>"),
            "<|im_start|>«user»\n«a»<|im_end|>");
}

TEST(JinjaProvenance, ConcatenationKeepsBoth) {
  EXPECT_EQ(marked("{{ '<|im_start|>' + messages[0].role + '\\n' ~ messages[0].tags[1] ~ '<|im_end|>' }}"),
            "<|im_start|>«user»\n«b»<|im_end|>");
  EXPECT_EQ(marked("{{ ['<|x|>', messages[0].role] | join('<|y|>') }}"), "<|x|><|y|>«user»");
  EXPECT_EQ(marked("{{ '<|y|>'.join([messages[0].role, 'z']) }}"), "«user»<|y|>z");
}

TEST(JinjaProvenance, FormattingKeepsBoth) {
  EXPECT_EQ(marked("{{ '<|%s|>' % messages[0].role }}"), "<|«user»|>");
  EXPECT_EQ(marked("{{ '<|%s|>%6s' | format('a', messages[0].role) }}"), "<|a|>  «user»");
  EXPECT_EQ(marked("{{ '<|{}|>{:>6}'.format('a', messages[0].role) }}"), "<|a|>  «user»");
}

TEST(JinjaProvenance, PartsOfStringsKeepTheirOrigin) {
  EXPECT_EQ(marked("{% set t = '<|a|>' ~ messages[0].role ~ '<|b|>' %}{{ t[3:8] }} {{ t[::-1] }} {{ "
                   "t.split('us')[1] }} {{ t.strip('<>') }}"),
            "|>«use» >|b|<«resu»>|a|< «er»<|b|> |a|>«user»<|b|");
  EXPECT_EQ(marked("{{ ('<|A|>' ~ messages[0].role) | upper | lower | title }}"), "<|a|>«user»");
  EXPECT_EQ(marked("{{ ('  <|a|> ' ~ messages[0].role ~ ' ') | trim | replace('|', '!') }}"), "<!a!> «user»");
  EXPECT_EQ(marked("{{ messages[0].role | replace('s', '<|s|>') }}"), "«u»<|s|>«er»");
  EXPECT_EQ(marked("{{ ('<|a|>\\n' ~ messages[0].role) | indent(2, true) }}"), "  <|a|>\n  «user»");
  EXPECT_EQ(marked("{{ messages[0].role.center(8, '*') }}{{ 'ab'.zfill(4) }}"), "**«user»**00ab");
}

TEST(JinjaProvenance, JsonOfInputIsInput) {
  EXPECT_EQ(marked("{{ messages[0].tags | tojson }}"), "«[\"a\"», «\"b\"]»");
  EXPECT_EQ(marked("{{ {'k': messages[0].role} | tojson }}"), "{\"k\": «\"user\"»}");
}

TEST(JinjaProvenance, NumbersOfTheInputAreInput) {
  EXPECT_EQ(marked("<|{{ messages[0].n }}|><|{{ messages[0].n + 1 }}|><|{{ loop_index | default(3) }}|>"),
            "<|«5»|><|«6»|><|3|>");
  EXPECT_EQ(marked("{% for m in messages %}<|{{ loop.index }}|>{% endfor %}{{ messages | length }}"),
            "<|1|>«1»");
}

TEST(JinjaProvenance, TokensOfTheModelCountAsTemplate) {
  EXPECT_EQ(marked("{{ bos_token }}{{ date }}"), "<s>«today»");
}

TEST(JinjaProvenance, BlocksAndMacrosKeepIt) {
  EXPECT_EQ(marked("{% macro m(x) %}<|{{ x }}|>{% endmacro %}{{ m(messages[0].role) }}{{ m('y') }}"),
            "<|«user»|><|y|>");
  EXPECT_EQ(marked("{% set b %}<|a|>{{ messages[0].role }}{% endset %}{{ b }}"), "<|a|>«user»");
  EXPECT_EQ(marked("{% filter upper %}<|a|>{{ messages[0].role }}{% endfilter %}"), "<|A|>«USER»");
  EXPECT_EQ(marked("{% macro m() %}<|{{ caller() }}|>{% endmacro %}{% call m() %}{{ messages[0].role }}!{% "
                   "endcall %}"),
            "<|«user»!|>");
  EXPECT_EQ(marked("{% generation %}<|a|>{{ messages[0].role }}{% endgeneration %}"), "<|a|>«user»");
}

TEST(JinjaProvenance, StrftimeHasTheOriginOfItsFormat) {
  EXPECT_EQ(marked("{{ strftime_now('%%') }}{{ strftime_now('x' ~ messages[0].role) }}"), "%«xuser»");
}

TEST(JinjaProvenance, NoOperationTurnsInputIntoTemplateText) {
  for (const std::string expression : {
           "c",
           "c ~ ''",
           "c + 'x'",
           "'x' + c",
           "c * 2",
           "c[0]",
           "c[1:]",
           "c[::-1]",
           "c | list",
           "c | list | join",
           "c | reverse",
           "c | first",
           "c | last",
           "c | upper",
           "c | lower",
           "c | title",
           "c | capitalize",
           "c | trim",
           "c | trim('x')",
           "c | replace('x', 'y')",
           "'x' | replace('x', c)",
           "c | replace('', '-')",
           "c | indent",
           "'a\nb' | indent(c)",
           "c | truncate(4, true, '', 0)",
           "c | wordwrap(1)",
           "'a b' | wordwrap(1, wrapstring=c)",
           "c | center(20)",
           "c | string",
           "c | escape",
           "c | safe",
           "c | forceescape",
           "c | striptags",
           "c | urlize",
           "'www.a.org' | urlize(target=c) ~ c",
           "c | tojson",
           "[c] | tojson",
           "{c: c} | tojson",
           "{'a': c} | xmlattr",
           "c | pprint",
           "[c] | pprint",
           "'%s' % c",
           "'%r' % c",
           "'%(a)s' % {'a': c}",
           "'%s' | format(c)",
           "c % ()",
           "c | format",
           "'{}'.format(c)",
           "'{!r}'.format(c)",
           "'{a[0]}'.format(a=c)",
           "c.format()",
           "c.upper()",
           "c.lower()",
           "c.title()",
           "c.swapcase()",
           "c.casefold()",
           "c.capitalize()",
           "c.strip('x')",
           "c.split()",
           "c.split('\n')",
           "c.rsplit(' ', 1)",
           "c.splitlines(true)",
           "c.partition(' ')",
           "c.rpartition(' ')",
           "c.replace('x', 'y')",
           "'x'.replace('x', c)",
           "c.join('ab')",
           "'-'.join([c, c])",
           "'x'.center(9, c[0])",
           "c.ljust(20)",
           "c.zfill(20)",
           "c.expandtabs()",
           "c.removeprefix('x')",
           "c.removesuffix('x')",
           "c.translate({120: 'y'})",
           "'x'.translate({120: c})",
           "[c]",
           "(c,)",
           "{c: 1}",
           "{1: c}",
           "[c] | map('upper') | list",
           "[c] | map('trim') | join",
           "[c, 'a'] | sort | join",
           "[c] | unique | join",
           "[c] | min",
           "[c] | max",
           "[c] | batch(2) | list",
           "[c] | slice(1) | list",
           "[[c, 1]] | groupby(0) | list",
           "{'a': c} | dictsort",
           "{'a': c}.items() | list",
           "{'a': c}.values()",
           "{c: 1}.keys()",
           "dict(a=c)",
           "namespace(a=c)",
           "namespace(a=c).a",
           "cycler(c).next()",
           "c | default('x')",
           "nope | default(c)",
           "c or 'x'",
           "'x' if false else c",
           "messages",
           "messages[0]",
           "messages[0].role",
           "messages | map(attribute='content') | join(', ')",
           "messages | selectattr('role') | list",
           "c | attr('upper') and c",
           "strftime_now(c)",
           "c | e ~ c",
           "(c | e) + c",
           "(c | safe) % ()",
           "('%s' | safe) % c",
           "('-' | safe).join([c, c])",
           "('{}' | safe).format(c)",
           "[[c]] | sum(start=[])",
           "c | urlencode ~ c",
           "c.encode is defined ~ c",
           "[c] * 2",
           "[c] + [c]",
           "[c][0]",
           "[c][::1]",
           "[c].copy()",
           "{'a': c}.get('a')",
           "{'a': c}['a']",
           "{'a': c}.a",
           "{'b': 1}.get('a', c)",
       }) {
    EXPECT_FALSE(trusts_input("{% set c = messages[0].content %}{{ " + expression + " }}")) << expression;
  }
}

}  // namespace
}  // namespace qwench
