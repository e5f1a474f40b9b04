"""qwench tokenize and qwench template through their --jsonl modes, against the golden files."""
import json
import os
import random
import tempfile
import unittest
from collections import defaultdict

from support import CODER, DATA, SANITIZED, SMOLLM2, TestCase, fetched, jsonl, qwench, read_jsonl, tokenizer

FAMILIES = ("qwen3", "qwen2.5", "smollm2")
CLOCK = "2025-03-07T14:05:09"  # of the goldens, where a case names none
REAL_TEMPLATES = {f"{family}.jinja": family for family in FAMILIES}


class Tokenize(TestCase):
    def compare_texts(self, model, rows, label):
        encoded = jsonl("tokenize", model, rows=[{"text": row["text"], "special": "all"} for row in rows])
        plain = jsonl("tokenize", model, rows=[{"text": row["text"], "special": "none"} for row in rows])
        ordinary = jsonl("tokenize", model, rows=[{"text": row["text"], "special": "non_special"} for row in rows])
        decoded = jsonl("tokenize", model, "--decode", rows=[{"ids": row["ids"], "skip_special": False} for row in rows])
        skipped = jsonl("tokenize", model, "--decode", rows=[{"ids": row["ids"], "skip_special": True} for row in rows])
        right = 0
        for row, have, some, none, text, skip in zip(rows, encoded, ordinary, plain, decoded, skipped):
            with self.subTest(f"{label}: {row['name']}"):
                self.assertEqual(have["ids"], row["ids"])
                self.assertEqual(len(have["pieces"]), len(row["ids"]))
                self.assertEqual(some["ids"], row.get("ids_no_special", row["ids"]))
                self.assertEqual(none["ids"], row.get("ids_plain", row["ids"]))
                self.assert_decodes(row, text, skip)
                right += 1
        return right

    def assert_decodes(self, row, text, skip):
        self.assertEqual(text["text"], row["decoded"])
        self.assertEqual("".join(text["deltas"]), row["decoded"])
        self.assertEqual(skip["text"], row["decoded_skip_special"])
        self.assertEqual("".join(skip["deltas"]), row["decoded_skip_special"])
        if "pieces" in row:
            self.assertEqual(text["deltas"][:len(row["ids"])], row["pieces"])

    def test_every_golden_text(self):
        right = wanted = 0
        for family in FAMILIES:
            rows = read_jsonl("tokenizer", f"{family}.jsonl")
            wanted += len(rows)
            right += self.compare_texts(tokenizer(family), rows, family)
        print(f"tokenize goldens: {right} of {wanted} rows")
        self.assertGreater(wanted, 1500)
        self.assertEqual(right, wanted)

    def test_ids_that_no_text_gives(self):
        right = wanted = 0
        for family in FAMILIES:
            rows = read_jsonl("tokenizer", f"{family}.decode.jsonl")
            wanted += len(rows)
            texts = jsonl("tokenize", tokenizer(family), "--decode",
                          rows=[{"ids": row["ids"], "skip_special": False} for row in rows])
            skips = jsonl("tokenize", tokenizer(family), "--decode",
                          rows=[{"ids": row["ids"], "skip_special": True} for row in rows])
            for row, text, skip in zip(rows, texts, skips):
                with self.subTest(f"{family}: {row['name']}"):
                    self.assert_decodes(row, text, skip)
                    right += 1
        print(f"decode goldens: {right} of {wanted} rows")
        self.assertEqual(right, wanted)

    def test_the_tokenizer_inside_a_gguf_is_the_same(self):
        for model, family in ((fetched(SMOLLM2), "smollm2"), (fetched(CODER), "qwen2.5")):
            rows = read_jsonl("tokenizer", f"{family}.jsonl")[::7]
            encoded = jsonl("tokenize", model, rows=[{"text": row["text"], "special": "all"} for row in rows])
            for row, have in zip(rows, encoded):
                with self.subTest(f"{family}: {row['name']}"):
                    self.assertEqual(have["ids"], row["ids"])

    def test_a_person_s_form(self):
        model = tokenizer("qwen3")
        ids = jsonl("tokenize", model, rows=[{"text": "Hello 世界", "special": "all"}])[0]["ids"]
        shown = qwench("tokenize", model, "Hello 世界")
        self.assertEqual(shown.code, 0, shown)
        for token in ids:
            self.assertIn(str(token), shown.out)
        back = qwench("tokenize", model, "--decode", *map(str, ids))
        self.assertEqual(back.code, 0, back)
        self.assertEqual(back.out.rstrip("\n"), "Hello 世界")

    def test_bad_lines_disturb_nobody(self):
        sound = {"text": "fine", "special": "all"}
        rows = [sound, "{", {"text": 1}, {"special": "all"}, {"text": "x", "special": "some"}, {"text": "x", "odd": 1},
                sound]
        answers = jsonl("tokenize", tokenizer("qwen3"), rows=rows)
        for row, answer in zip(rows, answers):
            with self.subTest(str(row)):
                self.assertEqual(set(answer), {"ids", "pieces"} if row == sound else {"error"})
        rows = [{"ids": [9707]}, {"ids": ["a"]}, {"ids": [1 << 40]}, {"ids": 5}, {"ids": [9707], "skip_special": 3},
                {"ids": [9707]}]
        answers = jsonl("tokenize", tokenizer("qwen3"), "--decode", rows=rows)
        self.assertEqual([answer.get("text") for answer in answers], ["Hello", None, None, None, None, "Hello"])

    def test_a_megabyte_of_anything_takes_time_in_proportion(self):
        random_source = random.Random(7)
        size = 200_000 if SANITIZED else 1_000_000
        texts = {"one character": "a" * size, "spaces": " " * size, "newlines": "\n" * size,
                 "random bytes": random_source.randbytes(size).decode("utf-8", "replace"),
                 "emoji": "👩‍👩‍👧‍👦🏽" * (size // 29), "digits": "7" * size, "combining marks": "e\u0301" * (size // 3),
                 "special text": "<|im_start|>" * (size // 12)}
        for name, text in texts.items():
            with self.subTest(name):
                outcome = qwench("tokenize", tokenizer("qwen3"), "--jsonl", stdin=json.dumps({"text": text}) + "\n",
                                 timeout=60)
                self.assertEqual(outcome.code, 0, outcome)
                self.assertLess(outcome.seconds, 60 if SANITIZED else 6)


class Template(TestCase):
    def assert_renders(self, case, answer):
        """An engine may follow the template alone or apply_chat_template, where the two differ."""
        allowed = [case.get("expected"), case.get("expected_apply")]
        if "text" in answer:
            self.assertIn(answer["text"], [text for text in allowed if text is not None])
        else:
            self.assertTrue("error" in case or "error_apply" in case, answer)
            if "raise_exception" in (case.get("error_kind"), case.get("error_apply_kind")) and "error" in case:
                self.assertIn(case["error"], answer["error"])

    def request(self, case):
        fields = ("messages", "tools", "documents", "add_generation_prompt", "kwargs", "bos_token", "eos_token", "now")
        return {"now": CLOCK, **{field: case[field] for field in fields if field in case}}

    def test_every_golden_conversation(self):
        groups = defaultdict(list)
        cases = read_jsonl("chat", "cases.jsonl")
        for case in cases:
            groups[case["template"]].append(case)
        right = 0
        for template, group in sorted(groups.items()):
            where = [tokenizer(REAL_TEMPLATES[template])] if template in REAL_TEMPLATES else [
                "--template", os.path.join(DATA, "chat", "templates", template)]
            for case, answer in zip(group, jsonl("template", *where, rows=[self.request(case) for case in group])):
                with self.subTest(case["name"]):
                    self.assert_renders(case, answer)
                    right += 1
        print(f"template goldens: {right} of {len(cases)} conversations")
        self.assertEqual(len(cases), 211)
        self.assertEqual(right, len(cases))

    def test_a_sample_of_expressions(self):
        rows = read_jsonl("chat", "expressions.jsonl")[::10]
        with tempfile.TemporaryDirectory() as folder:
            for number, row in enumerate(rows):
                path = os.path.join(folder, f"{number}.jinja")
                with open(path, "w", encoding="utf-8", newline="") as f:
                    f.write(row["source"])
                answer, = jsonl("template", "--template", path, rows=[self.request(row)])
                with self.subTest(row["source"]):
                    self.assert_renders(row, answer)

    def test_ids_of_rendered_conversations(self):
        """Equal to the official ones, but where a message holds the text of an added token: that stays text here."""
        by_name = {case["name"]: case for case in read_jsonl("chat", "cases.jsonl")}
        rows = read_jsonl("chat", "ids.jsonl")
        equal = typed = apply_only = 0
        for family in FAMILIES:
            with open(os.path.join(tokenizer(family), "tokenizer.json"), encoding="utf-8") as f:
                added = [token["content"] for token in json.load(f)["added_tokens"]]
            mine = [row for row in rows if row["tokenizer"] == family]
            answers = jsonl("template", tokenizer(family), "--ids",
                            rows=[self.request(by_name[row["name"]]) for row in mine])
            decoded = jsonl("tokenize", tokenizer(family), "--decode",
                            rows=[{"ids": answer.get("ids", [])} for answer in answers])
            for row, answer, text in zip(mine, answers, decoded):
                case = by_name[row["name"]]
                with self.subTest(row["name"]):
                    if answer.get("text") != case.get("expected"):
                        self.assert_renders(case, answer)
                        apply_only += 1
                    elif any(token in json.dumps([case.get(k) for k in ("messages", "tools", "documents")],
                                                 ensure_ascii=False) for token in added):
                        self.assertEqual(text["text"], answer["text"])
                        typed += 1
                    else:
                        self.assertEqual(answer["ids"], row["ids"])
                        equal += 1
        print(f"template id goldens: {equal + typed + apply_only} of {len(rows)} conversations ({equal} equal ids, "
              f"{typed} with typed token text, {apply_only} as apply_chat_template alone renders them)")
        self.assertEqual(equal + typed + apply_only, len(rows))
        self.assertGreater(equal, 50)

    def test_thinking_can_be_switched(self):
        message = {"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": True}
        on, off = jsonl("template", tokenizer("qwen3"), rows=[{**message, "kwargs": {"enable_thinking": True}},
                                                              {**message, "kwargs": {"enable_thinking": False}}])
        self.assertNotIn("<think>", on["text"])
        self.assertTrue(off["text"].endswith("<think>\n\n</think>\n\n"), off)

    def test_a_hostile_template_is_stopped(self):
        sources = ["{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
                   "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{{ 'x' * 1000000000000 }}", "{{ " + "(" * 20000,
                   "{{ [1] * 1000000000 }}", "{{ 9 ** 9 ** 9 ** 9 ** 9 ** 9 }}", "{% set ns = namespace(a='x') %}{% for i in range(99) %}"
                   "{% set ns.a = ns.a ~ ns.a %}{% endfor %}{{ ns.a }}"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "hostile.jinja")
            for source in sources:
                with self.subTest(source[:60]):
                    with open(path, "w", encoding="utf-8") as f:
                        f.write(source)
                    outcome = qwench("template", "--template", path, "--jsonl", stdin='{"messages": []}\n', timeout=120)
                    self.assertIn(outcome.code, (0, 1), outcome)
                    if outcome.code == 0:
                        self.assertEqual(list(outcome.lines()[0]), ["error"])
                    self.assertLess(outcome.seconds, 60 if SANITIZED else 10)

    def test_a_folder_with_only_a_tokenizer_serves_text_but_does_not_run(self):
        outcome = qwench("run", tokenizer("qwen3"), "hi")
        self.assert_fails_cleanly(outcome)


if __name__ == "__main__":
    unittest.main()
