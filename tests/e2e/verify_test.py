"""qwench verify, trace, perplexity and compare: right values on the tiny checkpoints, and refusals."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from support import DATA, ROOT, SANITIZED, SMOLLM2, TestCase, fetched, qwench, read_json
from score_test import DENSE, MODELS


def model(name):
    return os.path.join(MODELS, name)


class Scratch(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def ids_of(self, name):
        return self.write(name + ".ids", " ".join(map(str, read_json("models", name, "golden.json")["perplexity"]["ids"])))


class VerifyReference(Scratch):
    def reference(self, name, edit=None, moved=None):
        """A copy of a golden as reference.json and reference.safetensors, changed."""
        recorded = read_json("models", name, "golden.json")
        if edit:
            edit(recorded)
        self.write("reference.json", json.dumps(recorded))
        tensors = os.path.join(self.folder, "reference.safetensors")
        shutil.copy(os.path.join(model(name), "golden.safetensors"), tensors)
        if moved:
            tensor, element, by = moved
            with open(tensors, "r+b") as f:
                size, = struct.unpack("<Q", f.read(8))
                begin = json.loads(f.read(size))[tensor]["data_offsets"][0]
                at = 8 + size + begin + 4 * element
                f.seek(at)
                value, = struct.unpack("<f", f.read(4))
                f.seek(at)
                f.write(struct.pack("<f", value + by))
        return os.path.join(self.folder, "reference.json")

    def test_every_dense_model_equals_its_reference(self):
        for name in DENSE:
            with self.subTest(name):
                outcome = qwench("verify", model(name), "--reference", model(name), "--json")
                self.assertEqual(outcome.code, 0, outcome)
                report, = outcome.lines()
                self.assertTrue(report["ok"])
                self.assertEqual(sum(row["tensors"] for row in report["rows"]) + len(report["not_compared"]),
                                 len(read_json("models", name, "golden.json")["tensors"]))
                self.assertEqual([prompt["equal"] for prompt in report["greedy"]], [32] * 5)
                self.assertAlmostEqual(report["perplexity"]["mean_nll"],
                                       read_json("models", name, "golden.json")["perplexity"]["mean_nll"], delta=1e-4)

    def test_a_moved_value_fails_and_names_the_layer(self):
        path = self.reference("qwen3-tiny-f32", moved=("p1.hidden.3", 2 * 64 + 9, 0.02))
        outcome = qwench("verify", model("qwen3-tiny-f32"), "--reference", path)
        self.assertEqual(outcome.code, 1, outcome)
        self.assertIn("first at model.layers.2: prompt 1, position 2, element 9", outcome.out)
        row = next(line for line in outcome.out.splitlines() if line.startswith("model.layers.2 "))
        self.assertIn("prompt 1, position 2", row)
        again = qwench("verify", model("qwen3-tiny-f32"), "--reference", path, "--tolerance", "500")
        self.assertEqual(again.code, 0, again)

    def test_other_weights_than_the_recorded_fail(self):
        outcome = qwench("verify", model("qwen3-tiny-f32"), "--reference", model("qwen3-tiny-f32"), "--dtype", "bf16",
                         "--json")
        self.assertEqual(outcome.code, 1, outcome)
        self.assertFalse(outcome.lines()[0]["ok"])

    def test_speeds_stand_side_by_side(self):
        timings = {"device": "a machine", "prompt": 1, "new_tokens": 4, "prefill_seconds": 0.5, "with_cache_seconds": 1.0,
                   "without_cache_seconds": 2.0}
        path = self.reference("llama-tiny", lambda recorded: recorded.update(timings=timings))
        outcome = qwench("verify", model("llama-tiny"), "--reference", path, "--compare-speed", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        speed = outcome.lines()[0]["speed"]
        self.assertEqual(speed["reference"]["with_cache_seconds"], 1.0)
        for value in speed["qwench"].values():
            self.assertGreater(value, 0)
        table = qwench("verify", model("llama-tiny"), "--reference", path, "--compare-speed")
        self.assertIn("4 new tokens, without it", table.out)
        self.assertIn("a machine", table.out)
        none = qwench("verify", model("llama-tiny"), "--reference", model("llama-tiny"), "--compare-speed")
        self.assert_fails_cleanly(none)

    def test_wrong_references_are_one_sentence(self):
        self.assert_fails_cleanly(qwench("verify", model("llama-tiny"), "--reference", self.folder))
        self.assert_fails_cleanly(qwench("verify", model("llama-tiny"), "--reference", "/nowhere.json"))
        path = self.reference("llama-tiny", lambda recorded: recorded.pop("prompts"))
        self.assert_fails_cleanly(qwench("verify", model("llama-tiny"), "--reference", path))
        for flags in (["--tolerance", "2"], ["--compare-speed"], ["--tokens", "1"],
                      ["--reference", path, "--seed", "1"], ["--reference", path, "--tolerance", "0"]):
            with self.subTest(" ".join(flags)):
                self.assert_fails_cleanly(qwench("verify", model("llama-tiny"), *flags), code=2)

    def test_the_recorder_says_what_it_needs(self):
        tool = os.path.join(ROOT, "tools", "record_reference.py")
        done = subprocess.run([sys.executable, tool, "--help"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("transformers", done.stdout)
        done = subprocess.run([sys.executable, tool, "model", "out.txt"], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 2, done)


class VerifySelf(Scratch):
    def test_all_ways_of_computing_give_the_same_bits(self):
        outcome = qwench("verify", model("qwen2-tiny-f16"), "--seed", "3", "--tokens", "40", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        report, = outcome.lines()
        self.assertGreaterEqual(len(report["checks"]), 8)
        for check in report["checks"]:
            self.assertTrue(check["ok"], check)
            self.assertEqual(check["max_abs"] == 0 or check["tolerance"] > 0, True, check)
        stored = next(line for line in report["precision"] if "as stored (f16)" in line["what"])
        self.assertLess(stored["kl_max"], 1e-9)  # 0 but for tiles of AMX, which add up in another order
        self.assertEqual(stored["top1_agreement"], 1)

    def test_the_table_has_a_line_for_each_check_and_a_verdict(self):
        outcome = qwench("verify", model("llama-tiny"), "--tokens", "20")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("token by token, with the cache", outcome.out)
        self.assertIn("ok, bit for bit", outcome.out)
        self.assertRegex(outcome.out, r"verdict: all \d+ computations")


class VerifyInvariance(Scratch):
    def test_random_batches_give_every_request_what_it_gets_alone(self):
        outcome = qwench("verify", model("qwen3-tiny-bf16-tied"), "--invariance", "--seed", "5", "--rounds", "3", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        report, = outcome.lines()
        self.assertEqual(len(report["rounds"]), 3)
        self.assertTrue(report["ok"])
        for row in report["rounds"]:
            self.assertEqual(row["different"], 0, row)
            self.assertGreaterEqual(row["completions"], row["requests"])
        again, = qwench("verify", model("qwen3-tiny-bf16-tied"), "--invariance", "--seed", "5", "--rounds", "3",
                        "--json").lines()
        chosen = ["requests", "completions", "threads", "max_batch", "max_batch_tokens", "draft_tokens"]
        self.assertEqual([[row[name] for name in chosen] for row in again["rounds"]],
                         [[row[name] for name in chosen] for row in report["rounds"]])

    def test_the_table_has_a_line_for_each_round_and_a_verdict(self):
        outcome = qwench("verify", model("llama-tiny"), "--invariance", "--rounds", "1")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.out, r"verdict: \d+ completions in 1 rounds?, \d+ tokens")

    def test_flags_that_do_not_go_together_are_refused(self):
        for flags in (["--rounds", "3"], ["--invariance", "--tokens", "5"], ["--invariance", "--rounds", "0"],
                      ["--invariance", "--reference", "x.json"]):
            with self.subTest(" ".join(flags)):
                self.assert_fails_cleanly(qwench("verify", model("llama-tiny"), *flags), code=2)


class Perplexity(Scratch):
    def test_equals_the_reference(self):
        for name in DENSE:
            with self.subTest(name):
                outcome = qwench("perplexity", model(name), self.ids_of(name), "--ids", "--json")
                self.assertEqual(outcome.code, 0, outcome)
                report, = outcome.lines()
                golden = read_json("models", name, "golden.json")["perplexity"]
                self.assertEqual(report["scored"], golden["count"])
                self.assertAlmostEqual(report["mean_nll"], golden["mean_nll"], delta=1e-4)
                self.assertAlmostEqual(report["perplexity"] / golden["ppl"], 1, delta=1e-4)

    def test_every_window_scores_what_is_new(self):
        ids = self.ids_of("qwen3-tiny-f32")
        for window in (["--ctx", "16", "--stride", "4"], ["--ctx", "32"], ["--ctx", "64", "--stride", "1"]):
            report, = qwench("perplexity", model("qwen3-tiny-f32"), ids, "--ids", "--json", *window).lines()
            self.assertEqual(report["scored"], 63)

    def test_impossible_requests_are_one_sentence(self):
        ids = self.ids_of("qwen3-tiny-f32")
        for flags in (["--ctx", "1"], ["--stride", "0"], ["--ctx", "8", "--stride", "9"], ["--ctx", "1000000"]):
            with self.subTest(" ".join(flags)):
                self.assert_fails_cleanly(qwench("perplexity", model("qwen3-tiny-f32"), ids, "--ids", *flags), code=2)
        foreign = self.write("foreign", "7 999999")
        self.assert_fails_cleanly(qwench("perplexity", model("qwen3-tiny-f32"), foreign, "--ids"), code=2)
        short = self.write("short", "7")
        self.assert_fails_cleanly(qwench("perplexity", model("qwen3-tiny-f32"), short, "--ids"), code=2)
        self.assert_fails_cleanly(qwench("perplexity", model("qwen3-tiny-f32"), "/nowhere.txt", "--ids"))
        self.assert_fails_cleanly(qwench("perplexity", model("qwen3-tiny-f32"), ids))  # it has no tokenizer


class Compare(Scratch):
    def compare(self, a, b, *flags):
        outcome = qwench("compare", model(a), model(b), self.ids_of(a), "--ids", "--json", *flags)
        self.assertEqual(outcome.code, 0, outcome)
        return outcome.lines()[0]

    def test_a_model_and_itself(self):
        report = self.compare("qwen3-tiny-bf16-tied", "qwen3-tiny-bf16-tied", "--dtype-b", "f32")
        self.assertLess(report["kl_max"], 1e-9)  # 0 but for tiles of AMX, which add up in another order
        self.assertEqual(report["top1_agreement"], 1)
        self.assertAlmostEqual(report["perplexity_a"] / report["perplexity_b"], 1, delta=1e-6)
        self.assertEqual(report["positions"], 63)

    def test_rounded_weights_are_near_and_another_model_is_far(self):
        near = self.compare("qwen3-tiny-f32", "qwen3-tiny-f32", "--dtype-b", "bf16")
        self.assertGreater(near["kl_mean"], 0)
        self.assertLess(near["kl_max"], 0.05)
        far = self.compare("qwen3-tiny-f32", "llama-tiny")
        self.assertGreater(far["kl_mean"], 1)
        self.assertAlmostEqual(near["mean_nll_a"], far["mean_nll_a"], places=9)

    def test_other_vocabularies_are_refused(self):
        ids = self.ids_of("qwen3-tiny-f32")
        outcome = qwench("compare", model("qwen3-tiny-f32"), model("qwen2-tiny-untied-bf16"), ids, "--ids")
        self.assert_fails_cleanly(outcome, code=2)


class Trace(Scratch):
    def test_chromes_format(self):
        outcome = qwench("trace", model("qwen3-tiny-f32"), "--ids", "1,2,3", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        events = [event for event in outcome.lines()[0]["traceEvents"] if event["ph"] == "X"]
        operations = [event for event in events if event["cat"] == "operations"]
        self.assertEqual(len(operations), 2 * (1 + 3 * 13 + 4))
        self.assertEqual(operations[0]["name"], "embed_tokens")
        for event in events:
            self.assertGreaterEqual(event["dur"], 0)

    def test_the_table_names_layers_and_operations(self):
        outcome = qwench("trace", model("qwen2-tiny-f16"), "--ids", "1,2,3", "--decode", "2")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("prefill of 3 tokens", outcome.out)
        self.assertIn("decode at position 4", outcome.out)
        self.assertIn("gate_proj + up_proj", outcome.out)
        self.assertIn("GB/s", outcome.out)

    def test_the_logit_lens_ends_in_the_models_own_prediction(self):
        golden = read_json("models", "qwen3-tiny-f32", "golden.json")["prompts"][1]
        outcome = qwench("trace", model("qwen3-tiny-f32"), "--ids", ",".join(map(str, golden["ids"])), "--logit-lens",
                         "--json")
        places = outcome.lines()[0] if outcome.code == 0 else self.fail(outcome)
        self.assertEqual([row["place"] for row in places], ["embed_tokens", "layers.0", "layers.1", "layers.2"])
        self.assertEqual([token["id"] for token in places[-1]["top"]], [token["id"] for token in golden["top5_last"]])

    def test_the_attention_picture_is_xml_with_a_cell_for_each_pair(self):
        path = os.path.join(self.folder, "map.svg")
        outcome = qwench("trace", model("qwen3-tiny-f32"), "--ids", "1,2,3,4", "--attention", path, "--layer", "1",
                         "--head", "3")
        self.assertEqual(outcome.code, 0, outcome)
        root = ElementTree.parse(path).getroot()
        cells = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if "fill-opacity" in rect.attrib]
        self.assertEqual(len(cells), 4 * 5 // 2)

    def test_wrong_flags_are_usage_errors(self):
        for flags in (["--top", "3"], ["--layer", "1"], ["--logit-lens", "--totals"], ["--ids", "1,2", "-p", "text"],
                      ["--ids", "1,x"], ["--ids", "1,999999"]):
            with self.subTest(" ".join(flags)):
                more = [] if "--ids" in flags else ["--ids", "1,2"]
                self.assert_fails_cleanly(qwench("trace", model("qwen3-tiny-f32"), *flags, *more), code=2)

    @unittest.skipIf(SANITIZED, "the plain build runs the same")
    def test_a_real_model_says_paris(self):
        outcome = qwench("trace", fetched(SMOLLM2), "The capital of France is", "--logit-lens", "--top", "1")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("Paris", outcome.out.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
