"""`qwench plan`: what is planned is what is used, and what is refused is refused at load in the same words."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from support import SANITIZED, SMOLLM2, TestCase, fetched, qwench, tokenizer

TOLERANCE = 0.05


def write_random_model(folder, tied):
    """A qwen3 of 80 million parameters, large enough that the program itself weighs little."""
    import numpy  # pylint: disable=import-outside-toplevel

    hidden, inter, layers, heads, kv_heads, dim, vocab = 512, 1536, 12, 8, 4, 64, 49152
    config = {"model_type": "qwen3", "hidden_size": hidden, "intermediate_size": inter, "num_hidden_layers": layers,
              "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": dim, "vocab_size": vocab,
              "max_position_embeddings": 8192, "tie_word_embeddings": tied}
    shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
    if not tied:
        shapes["lm_head.weight"] = [vocab, hidden]
    for i in range(layers):
        for name, shape in {"input_layernorm": [hidden], "post_attention_layernorm": [hidden],
                            "self_attn.q_proj": [heads * dim, hidden], "self_attn.k_proj": [kv_heads * dim, hidden],
                            "self_attn.v_proj": [kv_heads * dim, hidden], "self_attn.o_proj": [hidden, heads * dim],
                            "self_attn.q_norm": [dim], "self_attn.k_norm": [dim], "mlp.gate_proj": [inter, hidden],
                            "mlp.up_proj": [inter, hidden], "mlp.down_proj": [hidden, inter]}.items():
            shapes[f"model.layers.{i}.{name}.weight"] = shape
    header, parts, end = {}, [], 0
    random = numpy.random.default_rng(1)
    for name, shape in shapes.items():
        values = (random.standard_normal(int(numpy.prod(shape)), dtype=numpy.float32) * 0.02).view(numpy.uint32) >> 16
        data = values.astype(numpy.uint16).tobytes()
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + len(data)]}
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)


class Plan(TestCase):
    def plan(self, *arguments):
        outcome = qwench("plan", *arguments, "--json")
        self.assertIn(outcome.code, (0, 1), outcome)
        return json.loads(outcome.out)

    def measure(self, model, context, batch, *options):
        """The peak of a run that fills the cache, beside the plan."""
        planned = self.plan(model, "--ctx", context, "--batch", batch, *options)["bytes"]["total"]
        answer = 8 * batch  # long enough that all of them are there at once
        # Prompts that begin differently: equal ones would share their part of the cache.
        lines = "".join(json.dumps({"ids": [(i * 7919 + k) % 40000 for i in range(context - answer)], "max_tokens": answer,
                                    "temperature": 0, "ignore_eos": True}) + "\n" for k in range(batch))
        outcome = qwench("run", "-m", model, "--jsonl", "-c", context, "--max-batch", batch, *options,
                         stdin=lines)
        self.assertEqual(outcome.code, 0, outcome)
        for answer in outcome.lines():
            self.assertNotIn("error", answer)
        share = planned / outcome.peak_bytes
        print(f"plan {os.path.basename(model)} {context} x {batch} {' '.join(options)}: planned "
              f"{planned / 1e6:.1f} MB, measured {outcome.peak_bytes / 1e6:.1f} MB, {100 * (share - 1):+.1f} %")
        self.assertLess(abs(share - 1), TOLERANCE, (model, context, batch, options))

    @unittest.skipIf(SANITIZED, "the sanitizers' own memory is not planned")
    def test_the_plan_is_what_is_used(self):
        smollm2 = fetched(SMOLLM2)
        self.measure(smollm2, 512, 1)
        self.measure(smollm2, 512, 4)
        self.measure(smollm2, 512, 2, "--kv-dtype", "f32")
        self.measure(smollm2, 1024, 1, "--kv-dtype", "q8_0")
        self.measure(smollm2, 256, 1, "--dtype", "f32")
        self.measure(smollm2, 512, 1, "--dtype", "bf16")
        for tied in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                # By another process: the peak of a child counts from what its parent has.
                subprocess.run([sys.executable, __file__, folder, str(int(tied))], check=True)
                self.measure(folder, 1024, 1)
                if tied:  # how the head is kept changes nothing of these
                    self.measure(folder, 512, 3, "--kv-dtype", "bf16")
                    self.measure(folder, 2048, 1)
                self.measure(folder, 256, 1, "--dtype", "f32")
                self.measure(folder, 1024, 1, "--dtype", "q8_0")
                self.measure(folder, 1024, 1, "--dtype", "bf16p")

    @unittest.skipIf(SANITIZED, "the sanitizers' own memory is not planned")
    def test_one_prompt_whose_first_pass_reads_the_mapped_file_stays_within_the_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, __file__, folder, "1"], check=True)
            shutil.copy(tokenizer("smollm2") + "/tokenizer.json", folder)
            planned = self.plan(folder, "--ctx", "256")["bytes"]["total"]
            outcome = qwench("run", folder, "--raw", "-c", "256", "-n", "60", "The sky is blue because " * 30)
            self.assertEqual(outcome.code, 0, outcome)
            share = outcome.peak_bytes / planned
            print(f"plan of one prompt: planned {planned / 1e6:.1f} MB, measured {outcome.peak_bytes / 1e6:.1f} MB")
            self.assertLess(share, 1 + TOLERANCE)
            self.assertGreater(share, 0.8)  # the cache is not full

    def test_what_is_refused_is_refused_in_the_same_words(self):
        model = fetched(SMOLLM2)
        refused = self.plan(model, "--memory", "150MB")
        self.assertFalse(refused["fits"])
        self.assertIn("150 MB are available", refused["verdict"])
        too_long = self.plan(model, "--memory", "300MB", "--ctx", "8000")
        self.assertFalse(too_long["fits"])
        self.assertIn("a context of 8000", too_long["verdict"])
        for cells, smaller, memory in (("f32", "f16", "420MB"), ("f16", "q8_0", "330MB")):
            report = self.plan(model, "--memory", memory, "--ctx", "8000", "--kv-dtype", cells)
            self.assertFalse(report["fits"])
            self.assertIn(f"(--kv-dtype {smaller})", report["verdict"])
            self.assertEqual(report["cheapest_change"], f"--kv-dtype {smaller}")
        fits = self.plan(model, "--memory", "300MB", "--ctx", too_long["longest_context"])
        self.assertTrue(fits["fits"])
        one_more = self.plan(model, "--memory", "300MB", "--ctx", too_long["longest_context"] + 16)
        self.assertFalse(one_more["fits"])

    def test_the_largest_batch_is_the_largest(self):
        model = fetched(SMOLLM2)
        most = self.plan(model, "--memory", "1GB", "--ctx", "1024")["largest_batch"]
        self.assertGreater(most, 4)
        self.assertTrue(self.plan(model, "--memory", "1GB", "--ctx", "1024", "--batch", most)["fits"])
        self.assertFalse(self.plan(model, "--memory", "1GB", "--ctx", "1024", "--batch", most + 1)["fits"])

    def test_text_and_wrong_uses(self):
        model = fetched(SMOLLM2)
        outcome = qwench("plan", model, "--ctx", "512")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("yes, it fits", outcome.out)
        self.assertEqual(qwench("plan", model, "--memory", "1MB").code, 1)
        for wrong in (["--memory", "lots"], ["--memory", "-1GB"], ["--device", "cuda"], ["--batch", "0"]):
            self.assert_fails_cleanly(qwench("plan", model, *wrong), code=2)


if __name__ == "__main__":
    if len(sys.argv) == 3 and os.path.isdir(sys.argv[1]):
        write_random_model(sys.argv[1], sys.argv[2] == "1")
    else:
        unittest.main()
