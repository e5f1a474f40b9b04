"""Two real models against the reference in float32 on the same (exactly dequantised) weights: from the GGUF file and
from a Hugging Face folder made of it."""
import json
import math
import os
import sys
import unittest

from support import CACHE, CODER, DATA, ROOT, SMOLLM2, TestCase, fetched, jsonl, qwench, read_json, tokenizer

sys.path.insert(0, os.path.join(ROOT, "tools"))
import gguf_to_hf  # noqa: E402

# What float32 arithmetic in another order may move: measured 4e-5 on logits between two references.
LOGIT = 5e-4
# What activations of 16 bits, which meet quantized weights, may move: measured 1.8e-3 on log-probabilities.
QUANTIZED_LOGIT = 2e-3
MEAN_NLL = 1e-4
# What activations of 8 bits may: the goldens' bounds for such engines.
BYTES_LOGIT = 2.0
BYTES_MARGIN = 0.5
BYTES_MEAN_NLL = 0.05


def folder_of(gguf, family, shard_bytes=None):
    """The Hugging Face folder made of a GGUF, kept in the cache."""
    folder = os.path.join(CACHE, "hf", os.path.basename(gguf).removesuffix(".gguf") + "-f32")
    if not os.path.isdir(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        gguf_to_hf.convert(gguf, folder, tokenizer(family), shard_bytes)
    return folder


class Real(TestCase):
    def compare(self, model, golden, label, logit=LOGIT):
        prompts = golden["prompts"]
        # Each command loads the model: as few as there are kinds of questions.
        scored = jsonl("score", model, rows=[{"ids": p["ids"]} for p in prompts] + [{"ids": golden["perplexity"]["ids"]}] +
                       [{"ids": p["ids"] + p["greedy"]} for p in prompts])
        scored, fed = scored[:len(prompts) + 1], scored[len(prompts) + 1:]
        chats = [p for p in prompts if p.get("messages")]
        greedy = {"temperature": 0, "repetition_penalty": 1}
        ran = jsonl("run", model, rows=[{"ids": p["ids"], **greedy, "max_tokens": len(p["greedy"])} for p in prompts] +
                    [{"messages": p["messages"], **greedy, "max_tokens": len(p["greedy"])} for p in chats])
        by_ids, by_chat = ran[:len(prompts)], ran[len(prompts):]
        texts = jsonl("tokenize", model, rows=[{"text": p["text"], "special": "all"} for p in prompts])
        right = 0
        for prompt, score, forced, ran, text in zip(prompts, scored, fed, by_ids, texts):
            with self.subTest(f"{label}: {prompt['name']}"):
                self.assertEqual(text["ids"], prompt["ids"])
                # log-probabilities differ from logits by one constant a row, whose error is bounded by the logits'
                for want, (token, logprob) in zip(prompt["top10_last"], score["top"]):
                    self.assertAlmostEqual(logprob, want["logprob"], delta=2 * logit)
                    self.assertIn(token, [entry["id"] for entry in prompt["top10_last"]])
                self.assertEqual(len(score["top"]), 10)
                for have, want in zip(forced["logprobs"][len(prompt["ids"]) - 1:], prompt["greedy_logprobs"]):
                    self.assertAlmostEqual(have, want, delta=2 * logit)
                self.assertEqual(ran["ids"], prompt["greedy"])
                self.assertEqual(ran["finish_reason"], prompt["finish_reason"])
                self.assertEqual(ran["text"], prompt["greedy_text"])
                right += 1
        for prompt, ran in zip(chats, by_chat):
            with self.subTest(f"{label}: {prompt['name']}, from messages"):
                self.assertEqual(ran["ids"], prompt["greedy"])
                self.assertEqual(ran["usage"]["prompt_tokens"], len(prompt["ids"]))
        nll = [-value for value in scored[-1]["logprobs"]]
        mean = math.fsum(nll) / len(nll)
        self.assertEqual(len(nll), golden["perplexity"]["count"])
        print(f"{label}: mean nll {mean:.6f}, reference {golden['perplexity']['mean_nll']:.6f}")
        self.assertAlmostEqual(mean, golden["perplexity"]["mean_nll"], delta=MEAN_NLL)
        print(f"real goldens: {right} of {len(prompts)} prompts of {label}")
        self.assertEqual(right, 8)

    def test_smollm2_from_gguf(self):
        self.compare(fetched(SMOLLM2), read_json("real", "smollm2-135m.json"), "smollm2-135m, GGUF",
                     QUANTIZED_LOGIT)

    def compare_bytes(self, model, golden, label):
        """With activations of 8 bits: log-probabilities of the reference's own tokens, and greedy ones up to a small margin."""
        prompts = golden["prompts"]
        *fed, text = jsonl("score", model, "--activation-bits", "8", rows=[{"ids": p["ids"] + p["greedy"]} for p in prompts] +
                           [{"ids": golden["perplexity"]["ids"]}])
        ran = jsonl("run", model, "--activation-bits", "8", rows=[{"ids": p["ids"], "temperature": 0, "repetition_penalty": 1,
                                         "max_tokens": len(p["greedy"])} for p in prompts])
        right = 0
        worst = 0.0
        for prompt, forced, free in zip(prompts, fed, ran):
            with self.subTest(f"{label}: {prompt['name']}"):
                for have, want in zip(forced["logprobs"][len(prompt["ids"]) - 1:], prompt["greedy_logprobs"]):
                    worst = max(worst, abs(have - want))
                    self.assertAlmostEqual(have, want, delta=2 * BYTES_LOGIT)
                for i, (have, want, margin) in enumerate(zip(free["ids"], prompt["greedy"], prompt["greedy_margins"])):
                    if have != want:
                        self.assertLess(margin, BYTES_MARGIN, f"token {i}")
                        break
                right += 1
        nll = [-value for value in text["logprobs"]]
        mean = math.fsum(nll) / len(nll)
        print(f"{label}: mean nll {mean:.6f}, reference {golden['perplexity']['mean_nll']:.6f}; log-probabilities within {worst:.3f}")
        self.assertAlmostEqual(mean, golden["perplexity"]["mean_nll"], delta=BYTES_MEAN_NLL)
        print(f"real goldens: {right} of {len(prompts)} prompts of {label}")
        self.assertEqual(right, 8)

    def test_smollm2_from_gguf_with_activations_of_8_bits(self):
        self.compare_bytes(fetched(SMOLLM2), read_json("real", "smollm2-135m.json"), "smollm2-135m, GGUF, activations of 8 bits")

    def test_coder_from_gguf_with_activations_of_8_bits(self):
        self.compare_bytes(fetched(CODER), read_json("real", "qwen2.5-coder-0.5b.json"),
                           "qwen2.5-coder-0.5b, GGUF, activations of 8 bits")

    def test_smollm2_from_a_folder(self):
        self.compare(folder_of(fetched(SMOLLM2), "smollm2"), read_json("real", "smollm2-135m.json"),
                     "smollm2-135m, folder")

    def test_coder_from_gguf(self):
        self.compare(fetched(CODER), read_json("real", "qwen2.5-coder-0.5b.json"), "qwen2.5-coder-0.5b, GGUF",
                     QUANTIZED_LOGIT)

    def test_coder_from_a_folder_in_shards(self):
        self.compare(folder_of(fetched(CODER), "qwen2.5", 600_000_000), read_json("real", "qwen2.5-coder-0.5b.json"),
                     "qwen2.5-coder-0.5b, sharded folder")


class Examined(TestCase):
    def test_verify_finds_the_model_equal_to_the_reference(self):
        name = "smollm2-135m"
        outcome = qwench("verify", fetched(SMOLLM2), "--reference", os.path.join(DATA, "real", name + ".json"), "--json")
        self.assertEqual(outcome.code, 0, outcome)
        report, = outcome.lines()
        wanted = [len(prompt["greedy"]) for prompt in read_json("real", name + ".json")["prompts"]]
        self.assertEqual([prompt["equal"] for prompt in report["greedy"]], wanted)
        self.assertTrue(report["perplexity"]["ok"], report)


class Chat(TestCase):
    def test_both_models_on_a_vulkan_device_compute_what_the_cpu_computes(self):
        listed = json.loads(qwench("devices", "--json").out)
        if not listed["devices"]:
            self.skipTest(f"there is no Vulkan device here: {listed['why_none']}")
        # Few tokens: in software each takes seconds. QWENCH_DEVICE_TOKENS=8 asks for as many of both models.
        asked = int(os.environ.get("QWENCH_DEVICE_TOKENS", "0"))
        for model, name, count in ((SMOLLM2, "smollm2-135m", asked or 6), (CODER, "qwen2.5-coder-0.5b", asked or 3)):
            golden = read_json("real", f"{name}.json")
            ids = golden["perplexity"]["ids"][:count]
            flags = ("--dtype", "f16", "--kv-dtype", "f16", "-c", "64", "--max-batch-tokens", "32")
            with self.subTest(name):
                cpu, device = (jsonl("score", fetched(model), *flags, "--device", where, rows=[{"ids": ids}],
                                     timeout=1800)[0]["logprobs"] for where in ("cpu", "vulkan"))
                worst = max(abs(a - b) for a, b in zip(cpu, device))
                print(f"vulkan: {name}: log-probabilities of {len(cpu)} tokens within {worst:.1e} of the CPU's")
                self.assertEqual(len(cpu), count - 1)
                self.assertLessEqual(worst, 2 * 5e-3)
                if model == CODER and not asked:
                    continue
                rows = [{"ids": ids, "max_tokens": 3, "ignore_eos": True, "repetition_penalty": 1, **sampling}
                        for sampling in ({"temperature": 0}, {"temperature": 0.8, "top_k": 20, "seed": 3})]
                cpu, device = ([row["ids"] for row in jsonl("run", fetched(model), *flags, "--device", where, rows=rows, timeout=1800)]
                               for where in ("cpu", "vulkan"))
                print(f"vulkan: {name}: greedy and sampled tokens {device}")
                self.assertEqual(device, cpu)

    def test_the_coder_writes_a_function_and_speaks_chinese(self):
        code, chinese = jsonl("run", fetched(CODER), rows=[
            {"messages": [{"role": "user", "content": "Write a Python function that returns the factorial of n."}],
             "temperature": 0, "max_tokens": 120},
            {"messages": [{"role": "user", "content": "用一句话介绍北京。"}], "temperature": 0, "max_tokens": 60}])
        self.assertIn("def ", code["text"])
        self.assertIn("factorial", code["text"])
        self.assertGreater(sum("\u4e00" <= c <= "\u9fff" for c in chinese["text"]), 5, json.dumps(chinese))


if __name__ == "__main__":
    unittest.main()
