#!/usr/bin/env python3
"""Compare the chat-template interpreter with Jinja 2 on random templates.

  jinja_differential.py [--build build/release] [--count 5000] [--seed 1] [--mode all|expr|stmt|mutate|format|literal] [--keep FILE]
  jinja_differential.py --write tests/data/chat/random.jsonl [--count 1500] [--seed 1]

Needs the package jinja2 (3.1.6) and a built library. Every disagreement in text, or in the kind of failure, is
printed; the exit code is 1 when there was one. --keep appends the sources that disagreed to FILE. --write renders
with Jinja 2 alone and writes rows for the tests, the shared variables first.
"""
import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.runtime
import jinja2.utils
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOW = datetime.datetime(2025, 3, 7, 14, 5, 9)
MESSAGES = [
    {"role": "system", "content": "Be <b>brief</b> & kind."},
    {"role": "user", "content": "Hello  W\u00f6rld \u4e2d\u6587 \U0001f600!\n\nline two\t'q' \"d\"", "n": 3, "f": 1.5, "tags": ["x", "Y", "z"]},
    {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {"a": 1, "b": [True, None, 2.5]}}]},
    {"role": "tool", "content": "", "ok": False},
]
KWARGS = {"s": "  some Text, with-words and UPPER ", "n": 7, "neg": -3, "f": 2.75, "flag": True, "off": False, "nothing": None,
          "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "d": {"k": 1, "b": "two", "items": [1, 2], "z": None}, "e": [], "u": "stra\u00dfe \u0391\u03a3 \u01c6",
          "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "Y"}, {"a": 1, "b": "z"}], "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}]}


class Generation(jinja2.ext.Extension):
    """The tag that marks the assistant's text."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


class SafeNamespace(jinja2.utils.Namespace):
    """Refuses names that begin with an underscore, as transformers' namespace does."""

    def __init__(*args, **kwargs):
        for name in dict(*args[1:], **kwargs):
            if isinstance(name, str) and name.startswith("_"):
                raise jinja2.exceptions.SecurityError("underscore")
        jinja2.utils.Namespace.__init__(*args, **kwargs)

    def __setitem__(self, name, value):
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError("underscore")
        jinja2.utils.Namespace.__setitem__(self, name, value)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime, namespace=SafeNamespace)
    return env


def kind(error):
    if isinstance(error, jinja2.exceptions.TemplateSyntaxError):
        return "syntax"
    if isinstance(error, jinja2.exceptions.SecurityError):
        return "security"
    if isinstance(error, jinja2.exceptions.UndefinedError):
        return "undefined"
    return "raise_exception" if type(error) is jinja2.exceptions.TemplateError else "other"


def reference(env, source):
    try:
        data = json.loads(json.dumps({"messages": MESSAGES, **KWARGS}))
        text = env.from_string(source).render(tools=None, documents=None, add_generation_prompt=False, **data)
        text.encode("utf-8")
        return {"text": text}
    except UnicodeEncodeError:
        return None  # a lone surrogate has no place in our texts
    except Exception as error:  # the kind of failure is what is compared
        return {"kind": kind(error), "message": str(error)}


class Expressions:
    """Random expressions: mostly sensible, sometimes not."""
    STRINGS = ["''", "'a'", "'Hello World'", "'a,b,,c'", "'  pad\\t\\n'", "'x\\u00e9\\u4e2d\\U0001f600'", "'<a href=\"x\">&'", "'12'", "'-3.5e2'", "'0x1f'", "'foo-bar baz_qux'",
               "'%s and %d'", "'{} {0}'", "'{:>8}|{!r}'", "'line\\nnext\\r\\n\\nend'", "'\\u00df\\u0130\\ufb01'", "'ABC'", "' '", "'http://example.com, (www.a.org) x@y.org'", "'it\\'s \"q\"'", "'true'", "'\\x00\\x7f\\xa0'"]
    NUMBERS = ["0", "1", "2", "-1", "3", "7", "10", "100", "1.5", "-2.5", "0.1", "1e16", "1e-5", "2.675", "12345678901234567890", "1_000", "0x1F", "3.0", "5e-324"]
    NAMES = ["s", "n", "neg", "f", "flag", "off", "nothing", "l", "ls", "d", "e", "u", "rows", "messages", "messages[1]", "messages[0].content", "messages[1].content", "nope", "tools", "d.k", "d['b']", "d.items", "tree", "messages[2].tool_calls"]
    UNARY_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "count", "first", "last", "list", "reverse", "sort", "unique", "join", "int", "float", "round", "abs", "string", "tojson", "escape", "e",
                     "safe", "forceescape", "striptags", "urlencode", "wordcount", "sum", "min", "max", "dictsort", "items", "default", "indent", "filesizeformat", "pprint", "xmlattr", "wordwrap", "center", "truncate", "urlize", "select", "reject", "d"]
    ARG_FILTERS = ["replace({s}, {s})", "replace({s}, {s}, {i})", "join({s})", "join({s}, attribute={s})", "default({x})", "default({x}, true)", "indent({i})", "indent({i}, true)", "indent({s}, blank=true)", "indent(first=true)",
                   "truncate({i})", "truncate({i}, true)", "truncate({i}, false, {s}, {i})", "wordwrap({i})", "wordwrap({i}, false)", "center({i})", "round({i})", "round({i}, 'floor')", "round({i}, 'ceil')", "int({x})", "int(base={i})", "float({x})",
                   "batch({i})", "batch({i}, {x})", "slice({i})", "slice({i}, {x})", "sort(reverse=true)", "sort(case_sensitive=true)", "sort(attribute='a')", "sort(attribute='b,a')", "unique(attribute='a')", "unique(true)", "groupby('a')",
                   "groupby('b')", "groupby('zz', default={x})", "map(attribute='a')", "map(attribute='b', default={x})", "map('upper')", "map({s})", "map('default', {x})", "select('odd')", "select('string')", "select('gt', {i})", "reject('none')", "select({s})",
                   "selectattr('a')", "selectattr('a', 'eq', {i})", "rejectattr('b', 'in', {x})", "sum(attribute='a')", "sum(start={x})", "min(attribute='a')", "max(case_sensitive=true)", "tojson(indent={i})", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)",
                   "tojson(separators=(',', ':'))", "trim({s})", "format({x}, {x})", "format({x})", "attr({s})", "attr('items')", "dictsort(by='value')", "dictsort(reverse=true)", "filesizeformat(true)", "xmlattr(false)", "urlencode", "truncate({i}, leeway=0)", "nosuch", "first({x})"]
    METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "casefold()", "strip()", "lstrip()", "rstrip()", "strip({s})", "split()", "split({s})", "split({s}, {i})", "rsplit({s}, {i})", "rsplit(none, {i})", "split(maxsplit={i})", "splitlines()", "splitlines(true)",
               "replace({s}, {s})", "replace({s}, {s}, {i})", "startswith({s})", "endswith(({s}, {s}))", "startswith({s}, {i})", "find({s})", "rfind({s})", "find({s}, {i}, {i})", "index({s})", "count({s})", "count({s}, {i})", "join({x})", "format({x}, {x})", "format(a={x})", "partition({s})", "rpartition({s})", "center({i})", "center({i}, '*')",
               "ljust({i})", "rjust({i}, {s})", "zfill({i})", "expandtabs({i})", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()", "islower()", "istitle()", "isnumeric()", "isdecimal()", "isidentifier()", "isprintable()", "isascii()", "removeprefix({s})", "removesuffix({s})",
               "get({x})", "get({s}, {x})", "keys()", "values()", "items()", "items()|list", "copy()", "index({x})", "count({x})", "append({x})", "pop()", "update({x})", "nosuch()", "a", "b", "k", "0", "content", "role", "__class__", "_x", "encode", "bit_length()", "real", "is_integer()"]
    TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "iterable", "sequence", "callable", "odd", "even", "upper", "lower", "escaped", "filter", "test", "eq({x})", "ne({x})", "gt({x})", "lt({x})", "ge({x})", "le({x})", "in({x})", "sameas({x})", "divisibleby({i})", "equalto({x})", "== {x}"]
    BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "+", "~", "=="]

    def __init__(self, rng):
        self.rng = rng

    def fill(self, pattern, depth):
        out = pattern
        while "{s}" in out or "{i}" in out or "{x}" in out:
            for mark, make in (("{s}", self.string), ("{i}", self.index), ("{x}", lambda: self.make(depth - 2))):
                if mark in out:
                    out = out.replace(mark, make().replace("{", "\x01").replace("}", "\x02"), 1)
        return out.replace("\x01", "{").replace("\x02", "}")

    def string(self):
        r = self.rng.random()
        if r < 0.75:
            return self.rng.choice(["','", "' '", "'a'", "'l'", "'o'", "'-'", "''", "'\\n'", "'Hello'", "'b'", "'x'", "'upper'", "'content'", "'items'"])
        return self.rng.choice(self.STRINGS) if r < 0.95 else self.atom()

    def index(self):
        return self.rng.choice(["0", "1", "2", "3", "5", "9", "20", "-1", "-2", "n", "none", "1.5", "true"]) if self.rng.random() < 0.9 else self.atom()

    def atom(self):
        r = self.rng.random()
        if r < 0.4:
            return self.rng.choice(self.NAMES)
        if r < 0.65:
            return self.rng.choice(self.STRINGS)
        if r < 0.85:
            return self.rng.choice(self.NUMBERS)
        return self.rng.choice(["true", "false", "none", "[]", "{}", "()", "range(4)", "range(5, 0, -2)", "[1, 2, 3]", "['a', none, 1.0]", "{'a': 1, 'b': [2]}", "(1,)", "dict(a=1)", "namespace(a=1).a", "{1: 'x', true: 'y'}"])

    def make(self, depth=3):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.atom()
        r = rng.random()
        sub = lambda: self.make(depth - 1)
        paren = lambda: "(" + self.make(depth - 1) + ")"
        if r < 0.28:
            return paren() + "|" + rng.choice(self.UNARY_FILTERS)
        if r < 0.46:
            return (paren() if rng.random() < 0.7 else self.atom()) + "|" + self.fill(rng.choice(self.ARG_FILTERS), depth)
        if r < 0.62:
            return (paren() if rng.random() < 0.5 else rng.choice(self.STRINGS + self.NAMES)) + "." + self.fill(rng.choice(self.METHODS), depth)
        if r < 0.76:
            return (paren() if rng.random() < 0.6 else self.atom()) + " " + rng.choice(self.BINARY) + " " + (paren() if rng.random() < 0.6 else self.atom())
        if r < 0.82:
            return paren() + " is " + rng.choice(["", "not "]) + self.fill(rng.choice(self.TESTS), depth)
        if r < 0.87:
            # Of names only: a slice of constants is folded by Jinja, where a failure gives undefined instead.
            base = "(" + rng.choice(self.NAMES) + rng.choice(["", "|list", "|upper", "|string", "|default([])"]) + ")"
            return base + "[" + rng.choice([self.index() + ":", ":" + self.index(), self.index() + ":" + self.index(), "::" + self.index(), self.index(), self.string(), self.make(1), "::-1"]) + "]"
        if r < 0.91:
            return paren() + " if " + sub() + rng.choice(["", " else " + paren()])
        if r < 0.95:
            return "[" + ", ".join(sub() for _ in range(rng.randint(0, 3))) + "]"
        if r < 0.97:
            return "{" + ", ".join(self.string() + ": " + sub() for _ in range(rng.randint(0, 2))) + "}"
        return rng.choice(["not ", "-", "+", "- "]) + paren()


class Statements(Expressions):
    """Random templates: every statement, white space control, macros and scopes."""
    VARS = ["a", "b", "x", "s", "n", "loop_", "ns"]

    def tag(self, text):
        r = self.rng
        return "{%" + r.choice(["", "", "", "-", "+"]) + r.choice([" ", ""]) + text + " " + r.choice(["", "", "", "-", "+"]) + "%}"

    def text(self):
        return self.rng.choice(["", "t", " ", "\n", "  \n", "word ", "\n\n", "  ", "{ ", "\tx\n", "\u00e9", "}} ", "# "])

    def value(self):
        return self.make(self.rng.choice([0, 0, 1, 1, 2]))

    def print(self):
        return "{{" + self.rng.choice(["", "", "-"]) + " " + self.rng.choice([self.value(), self.rng.choice(self.VARS), "loop.index", "loop.first", "caller()", "varargs", "kwargs", "m(1)", "m(b=2)", "m()", "self.blk()"] + [self.rng.choice(self.VARS)] * 4) + " " + self.rng.choice(["", "", "-"]) + "}}"

    def body(self, depth):
        return "".join(self.text() + self.statement(depth) for _ in range(self.rng.randint(0, 3))) + self.text()

    def statement(self, depth):
        rng = self.rng
        if depth <= 0:
            return self.print()
        r, t, b = rng.random(), self.tag, lambda: self.body(depth - 1)
        var = rng.choice(self.VARS)
        if r < 0.22:
            return self.print()
        if r < 0.34:
            return t("set " + rng.choice([var, var, "ns.v", "a, b"]) + " = " + rng.choice([self.value(), rng.choice(self.VARS), "1, 2", "namespace(v=1)"]))
        if r < 0.38:
            return t("set " + var + rng.choice(["", "", " | upper", " | trim | length"])) + b() + t("endset")
        if r < 0.50:
            out = t("if " + self.value()) + b()
            for _ in range(rng.choice([0, 0, 1, 2])):
                out += t("elif " + rng.choice([self.value(), rng.choice(self.VARS)])) + b()
            return out + rng.choice(["", t("else") + b()]) + t("endif")
        if r < 0.68:
            inner = b()
            if rng.random() < 0.3:
                inner += t("if " + rng.choice(["loop.index > 1", "x", self.value()])) + t(rng.choice(["break", "continue"])) + t("endif") + b()
            if rng.random() < 0.5:
                inner += "{{ loop." + rng.choice(["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "previtem", "nextitem", "cycle('p', 'q')", "changed(x)", "cycle()", "depth0", "nope"]) + " }}"
            head = rng.choice(["x in " + self.value(), "x in l", "x in messages", "a, b in d.items()", "x in range(3)", "x in ls", "x in rows", "a, b in [(1, 2), (3, 4)]", "x in l if x > 1", "x in ls if x is lower", "x in l if a is defined"])
            tail = rng.choice(["", "", t("else") + b()])
            if rng.random() < 0.12:
                return t("for x in tree recursive") + "{{ x.v }}[{{ loop(x.kids) }}]{{ loop.depth }}" + b() + tail + t("endfor")
            return t("for " + head) + inner + tail + t("endfor")
        if r < 0.75:
            return t("with " + rng.choice(["a = " + self.value(), "a = 1, b = a", "x = n", "a, b = [1, 2]", ""])) + b() + t("endwith")
        if r < 0.84:
            return t("macro m(" + rng.choice(["", "a", "a, b", "a, b=2", "a=n, b=a", "a, caller=none", "x=x"]) + ")") + b() + rng.choice(["", "{{ caller() }}", "{{ varargs }}", "{{ kwargs }}", "{{ a }}{{ b }}", "{{ caller is defined }}", "{{ caller(1) }}"]) + t("endmacro") + rng.choice(["", "{{ m(1) }}", "{{ m(1, 2, 3) }}", "{{ m(z=1) }}", "{{ m(*[1, 2]) }}"])
        if r < 0.89:
            return t("call" + rng.choice(["", "(x)", "(x=1)"]) + " " + rng.choice(["m()", "m(1)", "m(b=3)", "range(2)"])) + b() + t("endcall")
        if r < 0.92:
            return t("filter " + rng.choice(["upper", "trim", "replace('t', 'T')", "length", "indent(2)", "tojson"])) + b() + t("endfilter")
        if r < 0.94:
            return t("generation") + b() + t("endgeneration")
        if r < 0.955:
            return "{#" + rng.choice(["", "-", "+"]) + " c " + rng.choice(["", "-", "+"]) + "#}"
        if r < 0.97:
            return t("raw") + rng.choice(["{{ x }}", "{% if %}", " {# ", ""]) + t("endraw")
        if r < 0.98:
            return t("block blk" + rng.choice(["", " scoped"])) + b() + t("endblock")
        if r < 0.99:
            return t("autoescape " + rng.choice(["true", "false"])) + b() + t("endautoescape")
        return t(rng.choice(["break", "continue", "print a, n", "endif", "do x", "include 'x'", "set", "for", "if", "else"]))


def format_source(rng):
    """Formats: of Python's % and format(), of strftime, of numbers."""
    value = rng.choice(["0", "1", "-7", "255", "123456789", "1234567.891", "0.5", "-2.5", "1e20", "1e-7", "12345678901234567890123", "true", "'abc'", "'\u00e9\u4e2d'", "none", "[1, 'a']", "nope", "2.675", "1e16", "100.0", "0.0001", "-0.0", "1.0"])
    spec = rng.choice(["", "", "<", ">", "^", "=", "*<", "0>", "\u4e2d^", "x="]) + rng.choice(["", "", "+", "-", " "]) + rng.choice(["", "", "", "#"]) + rng.choice(["", "", "0"]) + rng.choice(["", "1", "8", "12"]) + rng.choice(["", "", "", ",", "_"]) + rng.choice(["", "", ".0", ".1", ".3", ".10"]) + rng.choice(["", "", "d", "f", "e", "g", "E", "G", "F", "x", "X", "o", "b", "c", "s", "n", "%", "r"])
    flags = rng.choice(["", "", "-", "+", " ", "0", "#", "-0", "+0", "#0"]) + rng.choice(["", "", "1", "8", "12"]) + rng.choice(["", "", ".0", ".1", ".3", "."]) + rng.choice(["", "", "", "l"])
    r = rng.random()
    if r < 0.35:
        return "{{ '[{:" + spec + "}]'.format(" + value + ") }}"
    if r < 0.65:
        return "{{ '[%" + flags + rng.choice("ddiufeEgGxXocsra%k") + "]' % " + rng.choice([value, "(" + value + ",)"]) + " }}"
    if r < 0.75:
        return "{{ '" + "".join(rng.choice(["%s", "%d", "%%", "x", "%(k)s", "%(b)5s", "%*d", "%.*f"]) for _ in range(rng.randint(1, 3))) + "' % " + rng.choice([value, "(1, 2)", "(3, 1, 2)", "d", "()", "{'k': 1}", "(4, 2.5)", "[1]"]) + " }}"
    if r < 0.85:
        return "{{ '" + "".join(rng.choice(["{}", "{0}", "{1}", "{a}", "{a.b}", "{a[k]}", "{0[0]}", "{0!r}", "{!s:>5}", "{{", "}}", "{", "}", "{:{}}", "{0.upper}", "x"]) for _ in range(rng.randint(1, 3))) + "'.format(" + rng.choice(["1, 2", "'s', 3", "d", "a=d", "[5], a=d", ""]) + ") }}"
    if r < 0.93:
        return "{{ strftime_now('" + "".join(rng.choice(["%" + rng.choice(["", "", "-", "_", "0", "^", "#", "5", "_5", "-5", "^#"]) + rng.choice("aAbBcCdDeFgGHIjklmMnpPrRsStTuUVwWxXyYzZ%fhE"), " ", "x"]) for _ in range(rng.randint(1, 3))) + "') }}"
    return "{{ " + value + rng.choice(["|round(" + str(rng.randint(-3, 4)) + ")", "|round(2, 'ceil')", "|float", "|int", "|string|float", "|string|int", " / 3", " ** 2", " // 7", " % 7", " * 1.1", "|filesizeformat", "|abs", "|tojson"]) + " }}"


def literal_source(rng):
    """Literals, operators without spaces, comments and white space."""
    text = "".join(rng.choice(["a", "\\n", "\\x41", "\\u00e9", "\\'", "\\\\", "\\0", "\\101", "\\8", "\\q", "\\N{BULLET}", "\\N{no}", "\\x4", "\\U0001F600", "\u00e9", "\\\u00e9", "\n", "{{", "%}", "#}", "}", "\"", "\\\n"]) for _ in range(rng.randint(0, 4)))
    number = rng.choice(["1", "0", "007", "1_0", "1__0", "_1", "0x1F", "0XfF_1", "0b101", "0b2", "0o17", "1.5", "1.", ".5", "1.e5", "1e5", "1E+5", "1e", "1.5.2", "1_0.5_0", "0_0", "1e-400", "12345678901234567890", "5.upper()", "1.real", "0x", "1.0e1_0"])
    gap = lambda: rng.choice(["", " ", "\n", "\t", "  ", "\u00a0"])
    r = rng.random()
    if r < 0.35:
        return "{{" + gap() + "'" + text + "'" + gap() + rng.choice(["", "'b'", "|length", "|upper"]) + gap() + "}}"
    if r < 0.6:
        return "{{" + gap() + number + gap() + rng.choice(["", "+", "-", "*", "**", "//", "~", "<", "==", "and", "or", "in", "."]) + gap() + rng.choice([number, "n", "''", ""]) + gap() + "}}"
    parts = ["{#", "#}", "{%", "%}", "{{", "}}", "{%-", "-%}", "{%+", "+%}", "{{-", "-}}", "{#-", "-#}", "{# c #}", "{% raw %}", "{% endraw %}", "{%- raw -%}", "{%- endraw -%}", "{% set x = 1 %}", "{{ n }}", "{% if 1 %}", "{% endif %}", " ", "\n", "\n\n", "  ", "\t", "a", "\r\n", "{", "}", "%", "\u3000"]
    return "".join(rng.choice(parts) for _ in range(rng.randint(1, 8)))


def mutate(rng, source):
    """A published-style template with a few characters or words changed."""
    out = source
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        r = rng.random()
        if r < 0.3:
            out = out[:at] + out[at + rng.randint(1, 6):]
        elif r < 0.6:
            out = out[:at] + rng.choice(["{%", "%}", "{{", "}}", "-", "|", "(", ")", "[", "]", "'", "\"", ".", ",", " if ", " else ", " in ", " is ", " not ", "\n", " ", "{#", "#}", "~", "+", "1", "x", "=", "==", ":", "\\", "loop", "{% raw %}"]) + out[at:]
        else:
            end = min(len(out), at + rng.randint(1, 30))
            to = rng.randrange(len(out) + 1)
            out = out[:to] + out[at:end] + out[to:]
    return out


def corpus():
    folder = os.path.join(ROOT, "tests", "data", "chat")
    sources = [open(os.path.join(folder, "templates", f), encoding="utf-8", newline="").read() for f in sorted(os.listdir(os.path.join(folder, "templates")))]
    with open(os.path.join(folder, "expressions.jsonl"), encoding="utf-8") as rows:
        return sources + [json.loads(row)["source"] for row in rows]


def build_driver(build, folder):
    program = os.path.join(folder, "jinja_driver")
    libraries = [os.path.join(build, "libqwench_%s.a" % layer) for layer in ("text", "checkpoint", "core")]
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-I" + os.path.join(ROOT, "src"), "-I" + os.path.join(ROOT, "include"), os.path.join(ROOT, "tools", "jinja_driver.cpp"),
                    *libraries, "-lfmt", "-lutf8proc", "-lpcre2-8", "-lsimdjson", "-lpthread", "-o", program], check=True)
    return program


def make_source(rng, mode, sources):
    if mode == "all":
        mode = rng.choice(["expr", "expr", "stmt", "mutate", "format", "literal"])
    if mode == "expr":
        return "{{ " + Expressions(rng).make(rng.choice([1, 2, 2, 3])) + " }}"
    if mode in ("format", "literal"):
        return format_source(rng) if mode == "format" else literal_source(rng)
    return Statements(rng).body(3) if mode == "stmt" else mutate(rng, rng.choice(sources))


def comparable(source, want):
    return want is not None and " at 0x" not in want.get("text", "").lower() and "lipsum" not in source and "random" not in source


def write_rows(path, count, rng, env):
    """Rows whose result does not depend on an address, half of them statements."""
    with open(path, "w", encoding="utf-8", newline="\n") as rows:
        rows.write(json.dumps({"messages": MESSAGES, "kwargs": KWARGS, "now": NOW.isoformat()}) + "\n")
        while count > 0:
            source = make_source(rng, "stmt" if count % 3 == 0 else "expr", [])
            want = reference(env, source)
            shown = ("|count", "|length", "wordcount", "'d.items'", "|e", "urlencode", "[:", "::", "d.items|", "(d.items)")  # of an address, perhaps
            if not comparable(source, want) or len(source) > 400 or len(want.get("text", "")) > 1500 or ("d.items" in source and any(s in source for s in shown)):
                continue
            if "kind" in want and rng.random() < 0.5:
                continue
            row = {"source": source, "expected": want["text"]} if "text" in want else {"source": source, "error_kind": want["kind"], "error": want["message"]}
            rows.write(json.dumps(row) + "\n")
            count -= 1


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    options.add_argument("--driver")
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--mode", default="all")
    options.add_argument("--show", type=int, default=20)
    options.add_argument("--keep")
    options.add_argument("--write")
    o = options.parse_args()
    rng, env, sources = random.Random(o.seed), environment(), corpus()
    if o.write:
        return write_rows(o.write, o.count, rng, env)
    with tempfile.TemporaryDirectory() as folder:
        driver = subprocess.Popen([o.driver or build_driver(o.build, folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        wrong = agreed = failures = 0
        for _ in range(o.count):
            source = make_source(rng, o.mode, sources)
            want = reference(env, source)
            if not comparable(source, want):
                continue
            driver.stdin.write(json.dumps({"source": source, "messages": MESSAGES, "kwargs": KWARGS, "now": int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp())}) + "\n")
            driver.stdin.flush()
            line = driver.stdout.readline()
            if not line:
                print("the driver died on", json.dumps(source))
                sys.exit(1)
            got = json.loads(line)
            if got.get("kind") == "limit":
                got["kind"] = "other"
            same = got["text"] == want["text"] if "text" in got and "text" in want else got.get("kind") == want.get("kind") and ("text" in got) == ("text" in want)
            if same:
                agreed += 1
                failures += "kind" in want
                continue
            wrong += 1
            if o.keep:
                with open(o.keep, "a", encoding="utf-8") as kept:
                    kept.write(json.dumps(source) + "\n")
            if wrong <= o.show:
                print(json.dumps(source, ensure_ascii=False), "\n   jinja2:", json.dumps(want, ensure_ascii=False)[:400], "\n   qwench:", json.dumps(got, ensure_ascii=False)[:400])
        driver.stdin.close()
        print("%d agreed (%d of them failures), %d disagreed" % (agreed, failures, wrong))
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
