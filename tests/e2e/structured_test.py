"""Constrained answers of the built program. Tiny models with random weights draw almost anything that they may: whatever
it is, it has to be valid. QWENCH_SCHEMAS sets how many random schemas are tried; for many, take a newer jsonschema (4.26 is) than
Debian 12's 4.10, which overlooks what unevaluatedProperties inside allOf has evaluated."""
import json
import os
import random
import re
import shutil
import unittest
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

from jsonschema import Draft202012Validator

from score_test import MODELS
from serve_case import Server
from support import SANITIZED, TestCase, jsonl, qwench

SCHEMAS = int(os.environ.get("QWENCH_SCHEMAS", "20" if SANITIZED else "100"))
PIECES = ['":', '",', '},', '],', '{"', '["', '\\"', '\\u', '00', '12', 'true', 'null', 'é', ' a', 'the', '"}']
EOS = 316


def byte_alphabet():
    """GPT-2's characters for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def tiny_model(folder):
    """A golden model's random weights with a tokenizer of all bytes and some longer tokens."""
    source = os.path.join(MODELS, "qwen3-tiny-f32")
    shutil.copy(os.path.join(source, "model.safetensors"), folder)
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        config = {**json.load(file), "eos_token_id": EOS, "bos_token_id": EOS}
    alphabet = byte_alphabet()
    vocab = {alphabet[byte]: byte for byte in range(256)}
    merges = []
    for piece in PIECES:
        letters = [alphabet[byte] for byte in piece.encode()]
        for end in range(2, len(letters) + 1):
            joined = "".join(letters[:end])
            if joined in vocab:
                continue
            merges.append(["".join(letters[:end - 1]), letters[end - 1]])
            vocab[joined] = len(vocab)
    while len(vocab) < EOS:  # added tokens are numbered behind the vocabulary
        vocab[f"zq{len(vocab)}"] = len(vocab)
    assert len(vocab) == EOS
    added = [{"id": EOS + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": i == 0} for i, text in enumerate(["<|end|>", "<think>", "</think>"])]
    tokenizer = {"version": "1.0", "added_tokens": added, "normalizer": None, "post_processor": None,
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
                 "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                 "model": {"type": "BPE", "vocab": vocab, "merges": merges}}
    for name, content in (("config.json", config), ("tokenizer.json", tokenizer)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    return vocab


class RandomSchemas:
    """Schemas of the supported keywords."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def schema(self, depth=0):
        choices = [self.string, self.integer, self.number, self.enum, self.const, self.simple, self.pattern, self.format,
                   self.unlike, self.joined, self.unique, self.steps, self.listed]
        if depth < 3:
            choices += [self.object, self.object, self.array, self.tuple, self.any_of, self.one_of, self.all_of,
                        self.counted, self.named, self.conditional, self.containing, self.overlapping, self.unevaluated,
                        self.free_names, self.nested, self.joined_names]
        return self.random.choice(choices)(depth)

    def root(self, _=None):
        if self.random.random() < 0.2:
            item = self.schema(2)
            node = {"type": "object", "properties": {"item": item, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
                    "required": ["item", "next"], "additionalProperties": False}
            return {"$ref": "#/$defs/node", "$defs": {"node": node}, "title": "a list"}
        return self.schema()

    def string(self, _):
        low = self.random.randrange(4)
        return self.random.choice([{"type": "string"}, {"type": "string", "maxLength": low + 3},
                                   {"type": "string", "minLength": low, "maxLength": low + self.random.randrange(300)}])

    def integer(self, _):
        low, high = sorted(self.random.randrange(-5000, 5000) for _ in range(2))
        return self.random.choice([{"type": "integer"}, {"type": "integer", "minimum": low, "maximum": high},
                                   {"type": "integer", "exclusiveMinimum": low}, {"type": "integer", "maximum": high},
                                   {"type": "integer", "multipleOf": self.random.randrange(1, 40), "minimum": low}])

    def number(self, _):
        low = self.random.randrange(-300, 300) / self.random.choice([1, 2, 8, 10, 100])
        return self.random.choice([{"type": "number"}, {"type": "number", "minimum": low, "exclusiveMaximum": low + 1.5},
                                   {"type": "number", "exclusiveMinimum": low}, {"type": "number", "maximum": low}])

    def enum(self, _):
        values = ["a", "b\"\\\n", "é中😀", 1, -2.5, None, True, {"k": [1, {}]}, []]
        return {"enum": self.random.sample(values, self.random.randrange(1, 5))}

    def const(self, _):
        return {"const": self.random.choice(["x y", 17, None, {"a": "b", "c": [1, 2]}])}

    def simple(self, _):
        return self.random.choice([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"], "maxLength": 5}])

    def pattern(self, _):
        return {"type": "string", "pattern": self.random.choice(
            [r"^[a-z]{2,5}$", r"^\d{3}-\d{4}$", r"^(foo|bar)+[^a-z]$", r"^[A-Z][a-z]*( [A-Z][a-z]*)?$", r"^\w+@\w+\.com$", r'^"\\[\n\t]$'])}

    def format(self, _):
        return {"type": "string", "format": self.random.choice(["date", "time", "date-time", "uuid", "ipv4", "ipv6", "email"])}

    def names(self, count):
        return self.random.sample(["id", "name", "a b", "q\"\\", "é", "value", "v", "va", "kind", ""], count)

    def object(self, depth):
        names = self.names(self.random.randrange(0, 6))
        schema = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names},
                  "required": [name for name in names if self.random.random() < 0.6]}
        extra = self.random.randrange(4)
        if extra == 0:
            schema["additionalProperties"] = self.schema(3)
            schema["maxProperties"] = len(names) + 2
        elif extra < 3:
            schema["additionalProperties"] = False
        return schema

    def array(self, depth):
        low = self.random.randrange(3)
        return {"type": "array", "items": self.schema(depth + 1), "minItems": low, "maxItems": low + self.random.randrange(4)}

    def tuple(self, depth):
        schema = {"type": "array", "prefixItems": [self.schema(depth + 1) for _ in range(self.random.randrange(1, 4))]}
        if self.random.random() < 0.5:
            schema["items"] = False
        return schema

    def unlike(self, _):
        return self.random.choice([{"type": "string", "not": {"enum": ["a", "ab", ""]}, "maxLength": 6},
                                   {"type": "string", "not": {"pattern": self.random.choice(["[aeiou]", "^x", r"\\d", "a.b"])}, "maxLength": 9},
                                   {"type": "integer", "minimum": -20, "maximum": 20, "not": {"enum": [-1, 0, 1, 7]}},
                                   {"type": "number", "minimum": 0, "maximum": 4, "not": {"const": self.random.choice([1, 2.5])}},
                                   {"type": ["null", "boolean", "integer"], "not": {"const": True}},
                                   {"not": {"type": ["object", "array", "string"]}},
                                   {"type": "integer", "not": {"maximum": self.random.randrange(100)}}])

    def joined(self, _):
        return self.random.choice([{"type": "string", "pattern": "[0-9]", "minLength": 2, "maxLength": self.random.randrange(2, 9)},
                                   {"type": "string", "allOf": [{"pattern": "^[a-m]"}, {"pattern": "[k-z]$"}, {"maxLength": 7}]},
                                   {"type": "string", "format": "ipv4", "maxLength": 9},
                                   {"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "minimum": 0, "maximum": 999}])

    def unique(self, _):
        values = self.random.sample(["a", "b", 1, 2.5, None, True, False, "c d", 3, 4, 5], self.random.randrange(1, 11))
        low = self.random.randrange(2) if len(values) > 1 else 0
        return {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": low, "maxItems": self.random.randrange(low, 5)}

    def counted(self, depth):
        names = self.names(self.random.randrange(2, 5))
        low = self.random.randrange(len(names))
        return {"type": "object", "properties": {name: self.schema(depth + 2) for name in names}, "required": names[:1] if self.random.random() < 0.3 else [],
                "minProperties": low, "maxProperties": max(1, low) + self.random.randrange(3), "additionalProperties": self.random.random() < 0.3}

    def named(self, depth):
        schema = {"type": "object", "properties": {"a1": self.schema(depth + 2)}, "maxProperties": 4, "additionalProperties": self.random.choice([False, {"type": "null"}])}
        schema["patternProperties"] = self.random.choice([{"^a": {"type": ["integer", "string", "null"], "maxLength": 3}}, {"^x_": self.schema(depth + 2)},
                                                         {"b": {"type": "integer"}, "c$": {"minimum": 3}}])
        if "^a" in schema["patternProperties"]:
            schema["properties"] = {"a1": {"maxLength": 2}}
        if self.random.random() < 0.4:
            schema["propertyNames"] = self.random.choice([{"maxLength": 4}, {"pattern": "^[a-z_0-9]+$"}, {"enum": ["a1", "x_1", "abc", "q"]}])
        return schema

    def free_names(self, depth):
        schema = {"type": "object", "minProperties": self.random.randrange(2, 5), "additionalProperties": self.random.choice([True, {"type": ["integer", "null"]}])}
        if self.random.random() < 0.5:
            schema["properties"] = {name: self.schema(depth + 2) for name in self.names(2)}
        if self.random.random() < 0.5:
            schema["maxProperties"] = schema["minProperties"] + self.random.randrange(3)
        if self.random.random() < 0.3:
            schema["patternProperties"] = {"^[a-m]": {"type": "boolean"}}
        return schema

    def nested(self, depth):
        kinds = [{"type": "object", "properties": {"kind": {"const": kind}, "v": self.schema(depth + 2)}, "required": ["kind"], "additionalProperties": False} for kind in "abc"]
        inner = self.random.choice(["anyOf", "oneOf"])
        return {"oneOf": [{inner: kinds[:2]}, {"anyOf": [kinds[2], self.random.choice([{"type": "null"}, {"type": "array", "maxItems": 1, "items": {"type": "null"}}])]}]}

    def joined_names(self, depth):
        closed = {"properties": {"a1": self.schema(depth + 2)}, "additionalProperties": {"type": ["integer", "null"]}}
        if self.random.random() < 0.5:
            closed["patternProperties"] = {self.random.choice(["^b", "b"]): {"type": "boolean"}}
        return {"type": "object", "maxProperties": 4, "allOf": [closed, {"patternProperties": {self.random.choice(["^[a-f]", "1$", "c"]): {"minimum": 5}},
                                                                        **self.random.choice([{}, {"additionalProperties": {"maximum": 3}}])}]}

    def conditional(self, depth):
        schema = {"type": "object", "properties": {"kind": {"enum": ["a", "b", 1]}, "v": self.schema(depth + 2), "w": {"type": "integer", "maximum": 99}},
                  "required": ["kind"] if self.random.random() < 0.7 else [], "additionalProperties": False}
        return {**schema, **self.random.choice([{"if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["v"]}, "else": {"required": ["w"]}},
                                                {"if": {"required": ["v"]}, "then": {"properties": {"w": {"minimum": 5}}, "required": ["w"]}},
                                                {"dependentRequired": {"v": ["w"], "w": ["kind"]}}, {"not": {"required": ["v", "w"]}},
                                                {"dependentSchemas": {"w": {"properties": {"kind": {"enum": ["b", 1]}}}}}])}

    def containing(self, depth):
        items = {"type": "integer", "minimum": 0, "maximum": 9} if self.random.random() < 0.6 else self.schema(depth + 2)
        schema = {"type": "array", "items": {"anyOf": [items, {"const": 5}]}, "contains": {"const": 5}, "maxItems": 4}
        if self.random.random() < 0.5:
            schema |= {"minContains": self.random.randrange(3), "maxContains": 2}
        return schema

    def overlapping(self, depth):
        return self.random.choice([{"oneOf": [{"type": "integer", "maximum": 10}, {"type": "integer", "minimum": 5}]},
                                   {"type": "object", "properties": {"a": self.schema(depth + 2), "b": {"type": "null"}}, "additionalProperties": False,
                                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                                   {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^[ab]"}]}])

    def steps(self, _):
        bounds = self.random.choice([{}, {"minimum": 0}, {"minimum": -3.5, "exclusiveMaximum": 40}, {"exclusiveMinimum": 1999.99}])
        return {"type": "number", "multipleOf": self.random.choice([0.01, 0.1, 0.5, 0.05, 2.5, 1.0, 86400]), **bounds}

    def listed(self, _):
        return {"enum": [1e20, 1.0, "ab", {"b": 1, "a": [1, 1.0]}, {"a": []}, [2, 3], None],
                **self.random.choice([{"type": ["integer", "object"]}, {"not": {"type": "number"}}, {"properties": {"a": {"maxItems": 1}}, "minLength": 3},
                                      {"oneOf": [{"type": "number"}, {"minimum": 2}]}, {"properties": {"a": True}, "unevaluatedProperties": False}])}

    def unevaluated(self, depth):
        rest = self.random.choice([False, {"type": "null"}])
        one, two = {"properties": {"a": self.schema(depth + 2)}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}}
        return {"type": "object", "unevaluatedProperties": rest, "maxProperties": 3,
                **self.random.choice([{"allOf": [one, two]}, {"anyOf": [one, {**two, "required": ["b"]}]}, {**one, "not": {"properties": {"c": {"const": 1}}, "required": ["c"]}},
                                      {"if": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}, "then": two, "else": {"properties": {"d": {"type": "null"}}}},
                                      {**two, "allOf": [{**one, "unevaluatedProperties": {"const": 7}}]}])}

    def any_of(self, depth):
        return {"anyOf": [self.schema(depth + 1) for _ in range(self.random.randrange(1, 4))]}

    def one_of(self, depth):
        kinds = self.random.sample(["a", "b", "c"], 2)
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "v": self.schema(depth + 1)},
                           "required": ["kind"], "additionalProperties": False} for kind in kinds]}

    def all_of(self, depth):
        return {"allOf": [{"type": "object", "properties": {"a": self.schema(depth + 1)}, "required": ["a"]},
                          {"properties": {"b": self.schema(depth + 1)}, "required": ["b"]}]}


class Structured(TestCase):
    @classmethod
    def setUpClass(cls):
        folder = TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = folder.name
        cls.vocab = tiny_model(folder.name)

    def rows(self, constraints, max_tokens=700):
        # What closes is favoured, so that most texts come to their end.
        bias = {str(self.vocab[token]): 3 for token in ('"', "}", "]")} | {str(EOS): 6, str(self.vocab["Ċ"]): -3}
        return [{"ids": [1 + i % 200, 5], "max_tokens": max_tokens, "temperature": 1.5, "top_k": 0, "top_p": 1, "seed": i,
                 "repetition_penalty": 1, "logit_bias": bias, **constraint} for i, constraint in enumerate(constraints)]

    def test_answers_to_random_schemas_are_valid(self):
        generator = RandomSchemas(11)
        schemas = [generator.root() for _ in range(SCHEMAS)]
        answers = jsonl("run", self.model, rows=self.rows({"json_schema": schema} for schema in schemas))
        ended = 0
        for schema, answer in zip(schemas, answers):
            with self.subTest(json.dumps(schema)):
                self.assertNotIn("error", answer)
                if answer["finish_reason"] == "length":
                    continue
                value = json.loads(answer["text"])
                Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(value)
                ended += 1
        print(f"random schemas: {ended} of {SCHEMAS} answers ended within the limit, all valid")
        self.assertGreater(ended, 0.9 * SCHEMAS)

    def test_other_constraints_hold(self):
        constraints = [({"guided_regex": r"[a-f]{3}(-\d+)?"}, r"[a-f]{3}(-\d+)?"), ({"guided_choice": ["yes", "no", "yes!"]}, "yes|no|yes!"),
                       ({"grammar": 'root ::= "<" [a-c]+ ">" root | "."'}, r"(<[a-c]+>)*\."), ({"guided_regex": "(é|中){2}"}, "(é|中){2}")]
        answers = jsonl("run", self.model, rows=self.rows([constraint for constraint, _ in constraints for _ in range(8)]))
        for i, answer in enumerate(answers):
            self.assertEqual(answer["finish_reason"], "stop", answer)
            self.assertTrue(re.fullmatch(constraints[i // 8][1], answer["text"]), answer)

    def test_any_object(self):
        for answer in jsonl("run", self.model, rows=self.rows([{"response_format": {"type": "json_object"}}] * 20)):
            if answer["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(answer["text"]), dict)

    def test_guesses_and_threads_change_nothing(self):
        rows = self.rows([{"json_schema": RandomSchemas(5).root()} for _ in range(12)], 60)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        plain = qwench("run", self.model, "--jsonl", stdin=lines)
        self.assertEqual(plain.code, 0, plain)
        for flags in (["--speculative", "ngram"], ["-t", "1"]):
            self.assertEqual(qwench("run", self.model, "--jsonl", *flags, stdin=lines).lines(), plain.lines(), flags)

    def test_a_limit_that_cuts_is_a_length(self):
        answer, = jsonl("run", self.model, rows=self.rows([{"guided_regex": "[ab]{50}"}], 10))
        self.assertEqual(answer["finish_reason"], "length")
        self.assertRegex(answer["text"], r"\A[ab]{10}\Z")

    def test_a_complete_text_ends_before_min_tokens(self):
        answer, = jsonl("run", self.model, rows=[{**self.rows([{"guided_choice": ["abc"]}])[0], "min_tokens": 50, "ignore_eos": True}])
        self.assertEqual((answer["text"], answer["finish_reason"]), ("abc", "stop"))

    def test_preemption_choices_and_guesses_change_no_constrained_answer(self):
        generator = RandomSchemas(23)
        long = {"type": "string", "minLength": 100, "maxLength": 120}
        rows = self.rows([{"guided_json": generator.root() if i % 2 else long} for i in range(10)], 150)
        bodies = [{"prompt": row.pop("ids") * 8, **row} for row in rows]
        def answer(server, body):
            status, _, got = server.post("/v1/completions", body)
            self.assertEqual(status, 200, got)
            return [(choice["text"], choice["finish_reason"]) for choice in got["choices"]]
        with Server("-c", 256, "--max-batch", 1, model=self.model) as server:
            alone = [answer(server, body) for body in bodies]
            seeds = [answer(server, {**bodies[0], "seed": 100 + i})[0] for i in range(3)]
        for schema, [(text, finish)] in zip([row["guided_json"] for row in rows], alone):
            if finish == "stop":
                Draft202012Validator(schema).validate(json.loads(text))
        with Server("-c", 256, "--kv-cache-tokens", 272, "--max-batch", 8, "--speculative", "ngram", model=self.model) as server:
            self.assertEqual(server.get("/props")[2]["kv_cache"]["tokens"], 272)
            with ThreadPoolExecutor(len(bodies)) as pool:
                together = list(pool.map(lambda body: answer(server, body), bodies))
            self.assertEqual(together, alone)
            self.assertGreater(server.metric("qwench:num_preemptions_total"), 0)
            self.assertEqual(answer(server, {**bodies[0], "seed": 100, "n": 3}), seeds)
            server.wait_until_still()

    def test_bad_constraints_are_refused_with_a_sentence(self):
        bad = [{"json_schema": {"not": {}}}, {"guided_regex": "(?=a)"}, {"grammar": "root ::= root"}, {"guided_choice": []},
               {"guided_regex": "a", "guided_choice": ["a"]}, {"response_format": {"type": "xml"}}, {"json_schema": 5}, {"json_schema": {"enum": [12345678901234567890123]}}]
        for row, answer in zip(bad, jsonl("run", self.model, rows=self.rows(bad))):
            self.assertIn("error", answer, row)
        for flags in (["--regex", "("], ["--json-schema", "{"], ["--grammar", "x"], ["--regex", "a", "--grammar", 'root ::= "a"']):
            self.assertEqual(qwench("run", self.model, "a", *flags).code, 2, flags)
        for flag, value in (("--json-schema", "nothing/here.json"), ("--json-schema", "/"), ("--grammar", "nothing.gbnf")):
            outcome = qwench("run", self.model, "a", flag, value)
            self.assertEqual(outcome.code, 2, outcome)
            self.assertIn(f"{flag} {value}: there is no such file", outcome.err)


class OverHttp(TestCase):
    def test_the_api_constrains_and_refuses(self):
        schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "big": {"type": "boolean"}},
                  "required": ["city", "big"], "additionalProperties": False}
        with Server() as server:
            asked = {"messages": [{"role": "user", "content": "Name a city in France, as JSON."}], "max_tokens": 80, "temperature": 0}
            named = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": schema}}
            status, _, body = server.post("/v1/chat/completions", {**asked, "response_format": named})
            self.assertEqual(status, 200, body)
            Draft202012Validator(schema).validate(json.loads(body["choices"][0]["message"]["content"]))
            status, _, body = server.post("/v1/completions", {"prompt": "Is water wet?", "guided_choice": ["yes", "no"], "n": 3})
            self.assertEqual(status, 200, body)
            self.assertTrue(all(choice["text"] in ("yes", "no") for choice in body["choices"]), body)
            for text in ("<think>no</think>yes", "<think>", "  <think>\n"):  # a choice's text, however it looks, is the content
                status, _, body = server.post("/v1/chat/completions", {**asked, "guided_choice": [text]})
                message = body["choices"][0]["message"]
                self.assertEqual((status, message["content"], message.get("reasoning_content")), (200, text, None), body)
            for bad in ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}},
                        {"guided_regex": "(a"}, {"guided_regex": "a", "guided_choice": ["a"]}, {"guided_grammar": "x"},
                        {"response_format": {"type": "json_schema"}}, {"guided_json": {"$ref": "#"}}, {"guided_json": {"const": 12345678901234567890123}}):
                status, _, body = server.post("/v1/chat/completions", {**asked, **bad})
                self.assertEqual((status, body["error"]["type"]), (400, "invalid_request_error"), (bad, body))


if __name__ == "__main__":
    unittest.main()
