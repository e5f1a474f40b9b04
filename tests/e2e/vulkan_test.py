"""--device: the tiny models on a Vulkan device, by Mesa's in software where there is no card.

Where there is no device at all these tests are skipped, with a sentence; ./dev deps installs the software one.
"""
import json
import os
import re
import subprocess
import sys
import unittest

from support import BINARY, DATA, ROOT, SANITIZED, TestCase, qwench

NO_GPU = {"VK_ICD_FILENAMES": "/nowhere.json", "VK_DRIVER_FILES": "/nowhere.json"}


def model(name):
    return os.path.join(DATA, "models", name)


def devices(env=None):
    outcome = qwench("devices", "--json", env=env)
    if outcome.code != 0:
        raise AssertionError(outcome)
    return json.loads(outcome.out)


class Shaders(TestCase):
    def test_what_a_weight_costs_is_counted_in_the_compiled_shaders(self):
        folder = os.path.join(os.path.dirname(os.path.dirname(BINARY)), "shaders")
        if not os.path.isdir(folder):
            self.skipTest("this build has no shaders")
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "shader_counts.py"), folder], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done)
        rows = {row[0]: [float(value) for value in row[1:]]
                for row in (re.findall(r"[\w.]+", line) for line in done.stdout.splitlines()[2:])}
        self.assertEqual(sorted(rows), ["f16", "f32", "q4_0", "q4_1", "q4_k", "q6_k", "q8_0"])
        for name, (_, loads, fma, *_) in rows.items():
            self.assertEqual(fma, 1, name)  # one for each weight
            self.assertGreaterEqual(loads, 3 / 8, name)  # of 8 weights, and 8 of x
        self.assertEqual(rows["f16"][:2], [2, 0.38])
        self.assertEqual(rows["f16"][4], 1)  # each is converted once


class Devices(TestCase):
    def test_devices_are_listed_and_auto_takes_none_in_software(self):
        listed = devices()
        self.assertGreaterEqual(listed["cpu"]["threads"], 1)
        for device in listed["devices"]:
            self.assertGreater(device["memory"], 0)
            self.assertTrue(device["name"] and device["driver"])
            if listed["auto"] == device["device"]:
                self.assertIn(device["type"], ("discrete", "integrated"))
        self.assertEqual(qwench("devices").code, 0)

    def test_without_drivers_the_cpu_computes_and_vulkan_says_why_not(self):
        listed = devices(NO_GPU)
        self.assertEqual((listed["auto"], listed["devices"]), ("cpu", []))
        self.assertTrue(listed["why_none"])
        outcome = qwench("score", model("qwen3-tiny-f32"), "--jsonl", "--device", "auto", stdin='{"ids": [1, 2, 3]}\n', env=NO_GPU)
        self.assertEqual(outcome.code, 0, outcome)
        outcome = qwench("score", model("qwen3-tiny-f32"), "--jsonl", "--device", "vulkan", stdin='{"ids": [1, 2, 3]}\n', env=NO_GPU)
        self.assert_fails_cleanly(outcome, code=1)
        self.assertIn("--device cpu", outcome.err)

    def test_wrong_devices_are_usage_errors(self):
        for flags in (["--device", "cuda"], ["--device", "vulkan:x"], ["--device", "cpu", "--gpu-layers", "1"],
                      ["--device", "cpu", "--vram", "1GB"], ["--device", "vulkan", "--vram", "much"]):
            with self.subTest(" ".join(flags)):
                self.assert_fails_cleanly(qwench("score", model("qwen3-tiny-f32"), "text", *flags), code=2)


class OnDevice(TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        listed = devices()
        if not listed["devices"]:
            print(f"Vulkan end-to-end tests: not run: {listed['why_none']}")
            raise unittest.SkipTest("there is no Vulkan device here")

    def run_ids(self, *flags, env=None, rows=1):
        """Greedy tokens of a prompt."""
        line = json.dumps({"ids": [5, 6, 7, 8, 9], "max_tokens": 12, "temperature": 0, "ignore_eos": True}) + "\n"
        return qwench("run", model("qwen3-tiny-bf16-tied"), "--jsonl", *flags, stdin=line * rows, env=env)

    def test_what_is_for_the_cpu_alone_is_refused(self):
        for flags in (["--dtype", "bf16p"], ["--activation-bits", "8"]):
            with self.subTest(" ".join(flags)):
                outcome = self.run_ids("--device", "vulkan", *flags)
                self.assert_fails_cleanly(outcome, code=1)
                self.assertIn("--device cpu", outcome.err)

    def test_greedy_answers_are_those_of_the_cpu_whole_or_streamed(self):
        cpu = self.run_ids("--device", "cpu", "--dtype", "f16")
        self.assertEqual(cpu.code, 0, cpu)
        for flags in ([], ["--gpu-layers", "0"], ["--gpu-layers", "1"]):
            with self.subTest(" ".join(flags)):
                outcome = self.run_ids("--device", "vulkan", *flags)
                self.assertEqual(outcome.code, 0, outcome)
                self.assertEqual([row["ids"] for row in outcome.lines()], [row["ids"] for row in cpu.lines()])

    def test_cells_of_bf16_give_the_tokens_of_the_cpu(self):
        outcomes = [self.run_ids("--device", device, "--dtype", "f16", "--kv-dtype", "bf16") for device in ("cpu", "vulkan")]
        cpu, device = ([row["ids"] for row in outcome.lines()] for outcome in outcomes)
        self.assertEqual(len(cpu), 1, outcomes)
        self.assertEqual(device, cpu)

    def test_verify_compares_layer_by_layer_with_no_message_of_the_validation_layers(self):
        outcome = qwench("verify", model("qwen2-tiny-window"), "--device", "vulkan", "--tokens", "40", "--json",
                         env={"QWENCH_VULKAN_VALIDATION": "1"})
        if "needs Vulkan's validation layers" in outcome.err:
            self.skipTest("the validation layers are not installed")
        self.assertEqual(outcome.code, 0, outcome)
        report = json.loads(outcome.out)
        self.assertTrue(report["ok"])
        self.assertGreater(len(report["rows"]), 8)
        self.assertEqual(report["rows"][-1]["name"], "lm_head")
        self.assertLessEqual(report["rows"][-1]["max_abs"], 5e-3)
        self.assertNotIn("validation", outcome.err)

    def test_what_cannot_run_there_names_the_cpu(self):
        outcome = qwench("run", model("qwen3-tiny-f32"), "--jsonl", "--device", "vulkan", "--kv-dtype", "q8_0", stdin='{"ids": [1]}\n')
        self.assert_fails_cleanly(outcome, code=1)
        self.assertIn("heads of 32 elements", outcome.err)
        planned = qwench("plan", model("qwen3-tiny-f32"), "--device", "vulkan", "--kv-dtype", "q8_0")
        self.assertEqual(planned.code, 1, planned)
        self.assertIn("heads of 32 elements", planned.err)
        self.assertIn("--device cpu", outcome.err)
        self.assert_fails_cleanly(self.run_ids("--device", "vulkan:99"), code=1)

    def test_plan_counts_the_device_and_streams_what_does_not_fit(self):
        flags = ["--device", "vulkan", "--ctx", "64", "--max-batch-tokens", "16", "--json"]
        whole = json.loads(qwench("plan", model("qwen3-tiny-f32"), *flags).out)
        self.assertEqual(whole["gpu_layers"], whole["layers"])
        self.assertEqual(whole["bytes"]["weights_streamed"], 0)
        # Decoding reads all weights and half of the cache for a token.
        bound = whole["machine"]["read_gb_per_s"] * 1e9 / (whole["weight_bytes_per_token"] + whole["bytes"]["kv_cache"] / 2)
        self.assertGreater(whole["expected"]["prefill_tokens_per_second"], 0)
        self.assertLessEqual(whole["expected"]["decode_tokens_per_second"], bound * 1.001)
        least = whole["bytes"]["total"]
        small = json.loads(qwench("plan", model("qwen3-tiny-f32"), *flags, "--gpu-layers", "0").out)
        self.assertGreater(small["bytes"]["weights_streamed"], 0)
        self.assertNotIn("expected", small)
        self.assertLess(small["bytes"]["weights_resident"], least)
        refused = qwench("plan", model("qwen3-tiny-f32"), *flags, "--vram", "20kB")
        self.assertEqual(refused.code, 1, refused)

    def test_trace_shows_one_submit_and_one_read_back_of_a_step(self):
        outcome = qwench("trace", model("qwen3-tiny-f32"), "--device", "vulkan", "--ids", "1,2,3", "--totals")
        self.assertEqual(outcome.code, 0, outcome)
        steps = re.findall(r"^1 submit, 1 read-back of 4 bytes$", outcome.out, re.MULTILINE)
        self.assertEqual(len(steps), 2, outcome)
        sampled = qwench("trace", model("qwen3-tiny-f32"), "--device", "vulkan", "--ids", "1,2,3", "--totals", "--top-k", "21")
        self.assertEqual(len(re.findall(r"^1 submit, 1 read-back of 168 bytes$", sampled.out, re.MULTILINE)), 2, sampled)
        streamed = qwench("trace", model("qwen3-tiny-f32"), "--device", "vulkan", "--ids", "1,2,3", "--gpu-layers", "0", "--json")
        self.assertEqual(streamed.code, 0, streamed)
        events = json.loads(streamed.out)["traceEvents"]
        self.assertTrue([event for event in events if event.get("cat") == "copies"])

    def test_a_failure_of_the_device_ends_the_request_and_not_the_program(self):
        for failure in ("lost", "memory"):
            with self.subTest(failure):
                outcome = self.run_ids("--device", "vulkan", env={"QWENCH_VULKAN_FAIL": f"{failure}:4"}, rows=2)
                self.assertIn(outcome.code, (0, 1), outcome)
                answers = outcome.lines()
                self.assertEqual(len(answers), 2)
                self.assertTrue(any("error" in answer for answer in answers), outcome)

    @unittest.skipIf(SANITIZED, "the plain build runs the same")
    def test_random_batches_change_no_bit(self):
        outcome = qwench("verify", model("qwen2-tiny-f16"), "--device", "vulkan", "--invariance", "--rounds", "1")
        self.assertEqual(outcome.code, 0, outcome)


if __name__ == "__main__":
    unittest.main()
