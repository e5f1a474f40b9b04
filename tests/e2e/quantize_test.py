"""qwench quantize: the file it writes holds the model, its tokenizer and its templates."""
import json
import math
import os
import struct
import tempfile
import unittest

from score_test import DENSE, MODELS
from support import SMOLLM2, TestCase, fetched, jsonl, qwench, read_json, read_jsonl, tokenizer


def checkpoint_of_one_layer(folder, files, vocab_size):
    """A Qwen3 of hidden size 32 with the tokenizer files of a real model."""
    hidden, heads, head_dim, ffn = 32, 2, 16, 64
    config = {"model_type": "qwen3", "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": 1,
              "num_attention_heads": heads, "num_key_value_heads": 1, "head_dim": head_dim, "vocab_size": vocab_size,
              "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
              "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
    shapes = {"model.embed_tokens.weight": [vocab_size, hidden], "model.norm.weight": [hidden]}
    layer = "model.layers.0."
    for name, shape in {"input_layernorm": [hidden], "post_attention_layernorm": [hidden],
                        "self_attn.q_proj": [heads * head_dim, hidden], "self_attn.k_proj": [head_dim, hidden],
                        "self_attn.v_proj": [head_dim, hidden], "self_attn.o_proj": [hidden, heads * head_dim],
                        "self_attn.q_norm": [head_dim], "self_attn.k_norm": [head_dim],
                        "mlp.gate_proj": [ffn, hidden], "mlp.up_proj": [ffn, hidden],
                        "mlp.down_proj": [hidden, ffn]}.items():
        shapes[f"{layer}{name}.weight"] = shape
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pattern = b"".join(struct.pack("<H", 0x3C00 + value % 389) for value in range(4096))
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + (pattern * (at // len(pattern) + 1))[:at])
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    for name in files and os.listdir(files):
        os.symlink(os.path.join(files, name), os.path.join(folder, name))


class Quantize(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out.gguf")

    def quantize(self, model, kind, *flags):
        outcome = qwench("quantize", model, self.out, "--type", kind, "--json", *flags)
        self.assertEqual(outcome.code, 0, outcome)
        report = json.loads(outcome.out)
        self.assertEqual(report["bytes"], os.path.getsize(self.out))
        self.assertEqual(qwench("inspect", "--check", self.out).code, 0)
        return report

    def test_a_plain_copy_computes_the_same(self):
        compared = 0
        for name in DENSE:
            if name == "qwen2-tiny-window":
                continue
            with self.subTest(name):
                golden = read_json("models", name, "golden.json")
                rows = [{"ids": prompt["ids"]} for prompt in golden["prompts"]]
                stored = "f16" if name.endswith("f16") else "f32"
                self.quantize(os.path.join(MODELS, name), stored, "--force")
                for have, want in zip(jsonl("score", self.out, rows=rows), jsonl("score", os.path.join(MODELS, name), rows=rows)):
                    for a, b in zip(have["logprobs"], want["logprobs"]):
                        self.assertAlmostEqual(a, b, delta=2e-4)
                    self.assertEqual(have["top"][0][0], want["top"][0][0])
                    compared += 1
        self.assertGreater(compared, 40)

    def test_quantized_files_are_what_quantizing_at_load_gives(self):
        model = os.path.join(MODELS, "qwen3-tiny-f32")
        rows = [{"ids": prompt["ids"]} for prompt in read_json("models", "qwen3-tiny-f32", "golden.json")["prompts"]]
        for kind in ("q8_0", "q4_0"):
            with self.subTest(kind):
                report = self.quantize(model, kind, "--force")
                self.assertIn(kind, [part["to"] for part in report["tensors"]])
                self.assertEqual(jsonl("score", self.out, rows=rows), jsonl("score", model, "--dtype", kind, rows=rows))

    def test_tokenizer_and_template_go_along(self):
        # The size of the vocabulary, as Qwen's configs have it: more rows than tokens.
        checkpoint_of_one_layer(self.folder, tokenizer("qwen3"), 151936)
        report = self.quantize(self.folder, "q8_0")
        self.assertEqual(report["file"], self.out)
        rows = [{"text": row["text"]} for row in read_jsonl("tokenizer", "qwen3.jsonl")]
        self.assertEqual(jsonl("tokenize", self.out, rows=rows), jsonl("tokenize", self.folder, rows=rows))
        messages = [{"messages": [{"role": "user", "content": "<|im_end|> é"}], "add_generation_prompt": True}]
        self.assertEqual(jsonl("template", self.out, "--ids", rows=messages),
                         jsonl("template", self.folder, "--ids", rows=messages))
        print(f"quantize, texts: {len(rows)} of {len(rows)}")

    def test_a_gguf_keeps_what_it_says(self):
        model = fetched(SMOLLM2)
        self.quantize(model, "q4_0")
        texts = [{"text": "How are you, 2026?"}]
        self.assertEqual(jsonl("tokenize", self.out, rows=texts), jsonl("tokenize", model, rows=texts))
        rows = [{"messages": [{"role": "user", "content": "What is the capital of France?"}], "temperature": 0,
                 "max_tokens": 8}]
        self.assertIn("Paris", jsonl("run", self.out, rows=rows)[0]["text"])

    def test_what_cannot_be_written_is_said(self):
        model = os.path.join(MODELS, "qwen3-tiny-f32")
        with open(self.out, "w", encoding="utf-8") as f:
            f.write("precious")
        outcome = qwench("quantize", model, self.out)
        self.assert_fails_cleanly(outcome, 2)
        self.assertIn("--force", outcome.err)
        with open(self.out, encoding="utf-8") as f:
            self.assertEqual(f.read(), "precious")
        os.remove(self.out)
        for arguments, words, code in (
                ([os.path.join(MODELS, "qwen2-tiny-window"), self.out], ["sliding window"], 1),
                ([model, os.path.join(self.folder, "no", "where.gguf")], ["where.gguf"], 1),
                ([model, self.out, "--type", "q4_k_m"], ["q4_k"], 2),
                ([os.path.join(self.folder, "nothing"), self.out], ["nothing"], 1)):
            with self.subTest(words):
                outcome = qwench("quantize", *arguments)
                self.assert_fails_cleanly(outcome, code)
                for word in words:
                    self.assertIn(word, outcome.err)
        self.assertEqual(os.listdir(self.folder), [])

    def test_numbers_beyond_f16_are_said(self):
        checkpoint_of_one_layer(self.folder, "", 64)
        weights = os.path.join(self.folder, "model.safetensors")
        with open(weights, "r+b") as f:
            f.seek(-2, os.SEEK_END)
            f.write(struct.pack("<H", 0x4780))  # 65536 as bf16
        outcome = qwench("quantize", self.folder, self.out, "--type", "f16")
        self.assert_fails_cleanly(outcome)
        self.assertIn("f16", outcome.err)
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(qwench("quantize", self.folder, self.out, "--type", "bf16").code, 0)


if __name__ == "__main__":
    unittest.main()
