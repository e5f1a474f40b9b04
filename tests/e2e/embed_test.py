"""qwench embed: vectors against the reference's hidden states, and what it refuses."""
import array
import json
import math
import os
import unittest

from score_test import MODELS
from support import SMOLLM2, TestCase, fetched, jsonl, qwench


def golden_tensor(folder, name):
    """Rows of a float32 tensor of golden.safetensors."""
    with open(os.path.join(folder, "golden.safetensors"), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        base = f.tell()
        begin, end = header[name]["data_offsets"]
        f.seek(base + begin)
        values = array.array("f", f.read(end - begin))
    rows, size = header[name]["shape"]
    return [values[i * size:(i + 1) * size] for i in range(rows)]


def unit(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


class Embed(TestCase):
    def test_vectors_are_the_references_hidden_states_pooled(self):
        compared = 0
        for name in ("qwen3-tiny-f32", "qwen2-tiny-window", "llama-tiny-rope3"):
            folder = os.path.join(MODELS, name)
            with open(os.path.join(folder, "golden.json"), encoding="utf-8") as f:
                prompts = json.load(f)["prompts"]
            for pooling in ("mean", "last"):
                answers = jsonl("embed", folder, "--pooling", pooling, "--kv-dtype", "f32", rows=[{"ids": prompts[i]["ids"]} for i in (1, 4)])
                for i, answer in zip((1, 4), answers):
                    rows = golden_tensor(folder, f"p{i}.hidden.norm")
                    want = unit([sum(column) for column in zip(*rows)]) if pooling == "mean" else unit(rows[-1])
                    self.assertEqual(answer["prompt_tokens"], len(rows))
                    for got, wanted in zip(answer["embedding"], want, strict=True):
                        self.assertAlmostEqual(got, wanted, delta=1e-4)
                    compared += 1
        self.assertEqual(compared, 12)

    def test_arguments_and_lines_give_the_same(self):
        model = fetched(SMOLLM2)
        given = [json.loads(line) for line in qwench("embed", model, "The sky is blue.", "Rain falls.", "--dimensions", 8).out.splitlines()]
        lines = qwench("embed", "-m", model, "--dimensions", 8, stdin="The sky is blue.\n\nRain falls.\n")
        self.assertEqual([json.loads(line) for line in lines.out.splitlines()], given)
        self.assertEqual([line["index"] for line in given], [0, 1])
        for line in given:
            self.assertEqual(len(line["embedding"]), 8)
            self.assertAlmostEqual(sum(x * x for x in line["embedding"]), 1, places=5)
        by_flag = qwench("embed", "-m", model, "The sky is blue.", "--dimensions", 8)
        self.assertEqual(json.loads(by_flag.out), given[0])

    def test_what_is_wrong_is_said(self):
        folder = os.path.join(MODELS, "qwen3-tiny-f32")
        for arguments, code, says in ((("--pooling", "cls", "x"), 2, "mean or last"), (("--dimensions", 0, "x"), 2, "--dimensions"),
                                      (("--dimensions", 1000, "x"), 2, "64"), (("--jsonl", "x"), 2, "--jsonl"), (("x",), 1, "tokenizer")):
            outcome = qwench("embed", folder, *arguments)
            self.assertEqual(outcome.code, code, outcome.err)
            self.assertIn(says, outcome.err)
        model = fetched(SMOLLM2)
        for arguments, code, says in ((("",), 2, "empty"), (("Rain falls.", ""), 2, "empty"), (("Rain falls.", "a " * 200, "-c", 64), 2, "text 2: ")):
            outcome = qwench("embed", model, *arguments)
            self.assert_fails_cleanly(outcome, code)
            self.assertIn(says, outcome.err)
        bad, good = (qwench("embed", model, text, "--dimensions", 8) for text in (b"a\xffb".decode("utf-8", "surrogateescape"), "a\ufffdb"))
        self.assertIn("U+FFFD", bad.err)
        self.assertEqual(bad.out, good.out)
        answers = jsonl("embed", folder, rows=[{"ids": []}, {"ids": [1], "text": "x"}, {"ids": [10**6]}, {"ids": [1, 2]}])
        self.assertEqual(["error" in answer for answer in answers], [True, True, True, False])


if __name__ == "__main__":
    unittest.main()
