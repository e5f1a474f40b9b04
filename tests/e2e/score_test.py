"""qwench score --jsonl on the tiny checkpoints: log-probabilities against the reference, and refusals."""
import json
import math
import os
import shutil
import tempfile
import unittest

from support import DATA, TestCase, jsonl, qwench, read_json

MODELS = os.path.join(DATA, "models")
DENSE = ["llama-tiny", "llama-tiny-rope3", "qwen2-tiny-f16", "qwen2-tiny-untied-bf16", "qwen2-tiny-window",
         "qwen2-tiny-yarn", "qwen3-tiny-bf16-tied", "qwen3-tiny-f32", "qwen3-tiny-sharded-bf16",
         "qwen3-tiny-tied-with-head"]
MIXTURES = ["qwen2moe-tiny", "qwen3moe-tiny"]


class Score(TestCase):
    def compare(self, folder, golden, *flags):
        """Every prompt's best next tokens and the perplexity text; returns how many rows were compared."""
        rows = [{"ids": prompt["ids"]} for prompt in golden["prompts"]] + [{"ids": golden["perplexity"]["ids"]}]
        answers = jsonl("score", folder, *flags, rows=rows)
        for prompt, answer in zip(golden["prompts"], answers):
            self.assertEqual(len(answer["logprobs"]), len(prompt["ids"]) - 1)
            top = answer["top"]
            self.assertGreaterEqual(len(top), 5)
            for want, (token, logprob) in zip(prompt["top5_last"], top):
                self.assertEqual(token, want["id"])
                self.assertAlmostEqual(logprob, want["logprob"], delta=2e-4)
        nll = [-value for value in answers[-1]["logprobs"]]
        self.assertEqual(len(nll), golden["perplexity"]["count"])
        for at, (have, want) in enumerate(zip(nll, golden["perplexity"]["nll"])):
            self.assertAlmostEqual(have, want, delta=5e-4, msg=f"token {at + 1}")
        self.assertAlmostEqual(sum(nll) / len(nll), golden["perplexity"]["mean_nll"], delta=1e-4)
        return len(rows)

    def test_every_dense_model_as_stored_and_as_f32(self):
        compared = 0
        for name in DENSE:
            golden = read_json("models", name, "golden.json")
            for flags in ([], ["--dtype", "f32"]):
                with self.subTest(f"{name} {' '.join(flags)}"):
                    compared += self.compare(os.path.join(MODELS, name), golden, *flags)
        wanted = sum(2 * (len(read_json("models", name, "golden.json")["prompts"]) + 1) for name in DENSE)
        print(f"score goldens: {compared} of {wanted} rows")
        self.assertEqual(compared, wanted)

    def test_the_newer_config_style_gives_the_same_bits(self):
        for name in DENSE:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                for file in os.listdir(os.path.join(MODELS, name)):
                    if not file.startswith(("golden", "config")):
                        os.symlink(os.path.join(MODELS, name, file), os.path.join(folder, file))
                shutil.copy(os.path.join(MODELS, name, "config.v5.json"), os.path.join(folder, "config.json"))
                rows = [{"ids": prompt["ids"]} for prompt in read_json("models", name, "golden.json")["prompts"]]
                self.assertEqual(jsonl("score", folder, rows=rows), jsonl("score", os.path.join(MODELS, name), rows=rows))

    def test_bf16p_gives_the_bits_of_bf16(self):
        for name in DENSE:
            with self.subTest(name):
                folder = os.path.join(MODELS, name)
                rows = [{"ids": prompt["ids"]} for prompt in read_json("models", name, "golden.json")["prompts"]]
                self.assertEqual(jsonl("score", folder, "--dtype", "bf16p", rows=rows),
                                 jsonl("score", folder, "--dtype", "bf16", rows=rows))

    def test_activations_of_8_bits_are_taken_where_they_are_asked_for(self):
        folder = os.path.join(MODELS, "llama-tiny")
        rows = [{"ids": read_json("models", "llama-tiny", "golden.json")["prompts"][0]["ids"]}]
        four_bits = ("score", folder, "--dtype", "q4_0")
        exact = jsonl(*four_bits, rows=rows)
        fast = jsonl(*four_bits, "--activation-bits", "8", rows=rows)
        self.assertNotEqual(fast, exact)
        for one, other in zip(fast[0]["logprobs"], exact[0]["logprobs"]):
            self.assertAlmostEqual(one, other, delta=0.5)
        by_environment = {"QWENCH_ACTIVATION_BITS": "8"}
        self.assertEqual(jsonl(*four_bits, rows=rows, env=by_environment), fast)
        self.assertEqual(jsonl(*four_bits, "--activation-bits", "16", rows=rows, env=by_environment), exact)
        plain = ("score", folder, "--dtype", "f32")
        self.assertEqual(jsonl(*plain, "--activation-bits", "8", rows=rows), jsonl(*plain, rows=rows))
        outcome = qwench(*four_bits, "--activation-bits", "9", "--jsonl", stdin='{"ids": [1]}\n')
        self.assert_fails_cleanly(outcome, code=2)
        outcome = qwench(*four_bits, "--jsonl", stdin='{"ids": [1]}\n', env={"QWENCH_ACTIVATION_BITS": "x"})
        self.assert_fails_cleanly(outcome, code=2)

    def test_models_of_experts_are_refused_with_a_sentence(self):
        for name in MIXTURES:
            with self.subTest(name):
                outcome = qwench("score", os.path.join(MODELS, name), "--jsonl", stdin='{"ids": [1, 2]}\n')
                self.assertEqual(outcome.code, 1, outcome)
                self.assertEqual(outcome.out, "")
                self.assertIn("moe", outcome.err.lower())

    def test_a_bad_line_gives_an_error_on_its_line_and_the_rest_goes_on(self):
        folder = os.path.join(MODELS, "qwen3-tiny-f32")
        size = read_json("models", "qwen3-tiny-f32", "config.json")["vocab_size"]
        sound = {"ids": [1, 2, 3]}
        rows = [sound, "{", sound, '{"ids": "text"}', '{"ids": []}', {"ids": [1, size]}, {"ids": [1, -1]},
                {"ids": [1, 2.5]}, {"ids": [1, 2 ** 40]}, "[]", "null", {"idz": [1]}, {"ids": [1, 2], "unknown": 1},
                "[" * 5000, sound]
        answers = jsonl("score", folder, rows=rows)
        for row, answer in zip(rows, answers):
            with self.subTest(str(row)[:60]):
                if row == sound:
                    self.assertEqual(answer, answers[0])
                    self.assertEqual(len(answer["logprobs"]), 2)
                else:
                    self.assertEqual(list(answer), ["error"])

    def test_one_token_has_no_log_probabilities_but_a_next_token(self):
        answer, = jsonl("score", os.path.join(MODELS, "qwen3-tiny-f32"), rows=[{"ids": [7]}])
        self.assertEqual(answer["logprobs"], [])
        self.assertGreaterEqual(len(answer["top"]), 5)

    def test_log_probabilities_are_a_distribution(self):
        size = read_json("models", "qwen2-tiny-f16", "config.json")["vocab_size"]
        ids = [3, 1, 4, 1, 5]
        total = sum(math.exp(answer["logprobs"][-1]) for answer in jsonl(
            "score", os.path.join(MODELS, "qwen2-tiny-f16"), rows=[{"ids": ids + [token]} for token in range(size)]))
        self.assertAlmostEqual(total, 1.0, delta=1e-3)

    def test_an_empty_input_gives_an_empty_output(self):
        outcome = qwench("score", os.path.join(MODELS, "qwen3-tiny-f32"), "--jsonl", stdin="")
        self.assertEqual((outcome.code, outcome.out), (0, ""), outcome)

    def test_a_longer_text_than_the_context_is_an_error_with_both_numbers(self):
        limit = read_json("models", "qwen3-tiny-f32", "config.json")["max_position_embeddings"]
        rows = [{"ids": [1] * (limit + 3)}, {"ids": [1, 2]}]
        answers = jsonl("score", os.path.join(MODELS, "qwen3-tiny-f32"), rows=rows)
        self.assertIn(str(limit + 3), json.dumps(answers[0].get("error")))
        self.assertIn(str(limit), json.dumps(answers[0].get("error")))
        self.assertIn("logprobs", answers[1])


if __name__ == "__main__":
    unittest.main()
