"""`qwench inspect`: what a model's files hold."""
import hashlib
import json
import os
import shutil
import struct
import tempfile
import unittest

from support import DATA, SANITIZED, SMOLLM2, TestCase, fetched, qwench

MODELS = sorted(name for name in os.listdir(os.path.join(DATA, "models")) if os.path.isdir(os.path.join(DATA, "models", name)))


def model(name):
    return os.path.join(DATA, "models", name)


def write_sparse(path, tensors):
    """A .safetensors file whose data takes no room on disk."""
    header, end = {}, 0
    for name, shape in tensors.items():
        size = 2
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + end)
    return end


class Inspect(TestCase):
    def json(self, *arguments):
        outcome = qwench("inspect", *arguments, "--json")
        self.assertEqual(outcome.code, 0, outcome)
        return json.loads(outcome.out)

    def test_every_model_has_a_card_a_config_and_a_structure(self):
        seen = 0
        for name in MODELS:
            with self.subTest(name):
                found = self.json(model(name), "--structure", "--tensors")
                self.assertEqual(found["card"]["parameters"] > 10000, True)
                self.assertEqual(len(found["tensors"]), found["card"]["tensors"])
                self.assertTrue(any(field["name"] == "hidden_size" for field in found["config"]))
                self.assertEqual(qwench("inspect", model(name)).code, 0)
                self.assertEqual(qwench("inspect", model(name), "--structure").code, 0)
                seen += 1
        self.assertGreaterEqual(seen, 10)

    def test_gguf(self):
        found = self.json(fetched(SMOLLM2), "--top", "2")
        self.assertEqual(found["card"]["parameters"], 134515008)
        self.assertEqual([t["name"] for t in found["largest"]][0], "model.embed_tokens.weight")
        self.assertEqual(len(found["largest"]), 2)

    def test_views_as_text(self):
        path = model("qwen3-tiny-bf16-tied")
        card = qwench("inspect", path)
        self.assertIn("the head is the embedding", card.out)
        self.assertRegex(card.out, r"rope_type +default +\(default\)")
        self.assertIn("layers.0–3 ×4", qwench("inspect", path, "--structure").out)
        tensors = qwench("inspect", path, "--tensors", "*.layers.0.*_proj.weight")
        self.assertEqual(len(tensors.out.splitlines()), 1 + 7, tensors)
        self.assertEqual(len(qwench("inspect", "--top", path).out.splitlines()), 1 + 10)
        stats = qwench("inspect", path, "--stats", "--tensors", "model.norm.weight")
        self.assertRegex(stats.out, r"tensor +type +shape +min +max +mean +std +zeros +NaN +Inf")

    def test_wrong_uses(self):
        path = model("qwen3-tiny-f32")
        self.assert_fails_cleanly(qwench("inspect"), code=2)
        self.assert_fails_cleanly(qwench("inspect", path, "--diff"), code=2)
        self.assert_fails_cleanly(qwench("inspect", path, path), code=2)
        self.assert_fails_cleanly(qwench("inspect", path, "--top", "0"), code=2)
        self.assert_fails_cleanly(qwench("inspect", path, "--check", "--stats"), code=2)
        self.assert_fails_cleanly(qwench("inspect", path, "--tensors", "nothing*"))
        self.assert_fails_cleanly(qwench("inspect", os.path.join(DATA, "nowhere")))

    def test_diff(self):
        a = model("qwen3-tiny-f32")
        same = qwench("inspect", "--diff", a, a)
        self.assertEqual(same.code, 0, same)
        self.assertIn("equal", same.out)
        other = qwench("inspect", "--diff", a, model("llama-tiny"))
        self.assertEqual(other.code, 1)
        self.assertRegex(other.out, r"model_type +qwen3 +llama")
        with tempfile.TemporaryDirectory() as folder:
            changed = os.path.join(folder, "changed")
            shutil.copytree(a, changed)
            with open(os.path.join(changed, "model.safetensors"), "r+b") as f:
                f.seek(-4, os.SEEK_END)
                f.write(struct.pack("<f", 123.0))
            outcome = qwench("inspect", "--diff", a, changed, "--json")
            self.assertEqual(outcome.code, 1)
            self.assertEqual(len(json.loads(outcome.out)["tensors"]), 1)

    def test_check_lists_every_problem(self):
        with tempfile.TemporaryDirectory() as folder:
            config = {"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
                      "num_attention_heads": 2, "vocab_size": 32}
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            write_sparse(os.path.join(folder, "model.safetensors"), {"model.embed_tokens.weight": [32, 15], "extra": [3]})
            outcome = qwench("inspect", "--check", folder)
            self.assertEqual(outcome.code, 1)
            self.assertEqual(len(outcome.err.splitlines()), 1)
            self.assertIn("[32, 15]", outcome.out)
            self.assertIn("extra", outcome.out)
            self.assertIn("model.norm.weight", outcome.out)

    @unittest.skipIf(SANITIZED, "the sanitizers' own tables are too large for such a mapping")
    def test_check_compares_checksums_where_they_are_known(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("config.json", "model.safetensors"):
                shutil.copy(os.path.join(model("llama-tiny"), name), folder)
            weights = os.path.join(folder, "model.safetensors")
            with open(weights, "rb") as f:
                right = hashlib.sha256(f.read()).hexdigest()
            sums = os.path.join(folder, "SHA256SUMS")
            for digits, code, said in ((right, 0, "1 file with the right checksum"), ("0" * 64, 1, "SHA256SUMS says 0000")):
                with open(sums, "w", encoding="utf-8") as f:
                    f.write(f"{digits}  model.safetensors\n")
                outcome = qwench("inspect", "--check", folder)
                self.assertEqual(outcome.code, code, outcome)
                self.assertIn(said, outcome.out + outcome.err)
            for line, said in (("x  model.safetensors", "line 1 is no line of sha256sum"), (right + "  ../x", "outside of the folder"),
                               (right + "  absent", "which is not there")):
                with open(sums, "w", encoding="utf-8") as f:
                    f.write(line + "\n")
                outcome = qwench("inspect", "--check", folder)
                self.assert_fails_cleanly(outcome)
                self.assertIn(said, outcome.err)

    def test_a_checkpoint_of_600_gb_takes_a_second(self):
        with tempfile.TemporaryDirectory() as folder:
            config = {"model_type": "qwen3", "hidden_size": 16384, "intermediate_size": 65536, "num_hidden_layers": 80,
                      "num_attention_heads": 128, "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 151936,
                      "tie_word_embeddings": False}
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            tensors = {"model.embed_tokens.weight": [151936, 16384], "lm_head.weight": [151936, 16384],
                       "model.norm.weight": [16384]}
            for i in range(80):
                for name, shape in {"input_layernorm": [16384], "post_attention_layernorm": [16384],
                                    "self_attn.q_proj": [16384, 16384], "self_attn.k_proj": [2048, 16384],
                                    "self_attn.v_proj": [2048, 16384], "self_attn.o_proj": [16384, 16384],
                                    "self_attn.q_norm": [128], "self_attn.k_norm": [128],
                                    "mlp.gate_proj": [65536, 16384], "mlp.up_proj": [65536, 16384],
                                    "mlp.down_proj": [16384, 65536]}.items():
                    tensors[f"model.layers.{i}.{name}.weight"] = shape
            size = write_sparse(os.path.join(folder, "model.safetensors"), tensors)
            self.assertGreater(size, 600e9)
            for arguments in ([], ["--structure"], ["--check"]):
                outcome = qwench("inspect", folder, *arguments)
                self.assertEqual(outcome.code, 0, outcome)
                self.assertLess(outcome.seconds, 1)
                self.assertLess(outcome.peak_bytes, 100e6)


if __name__ == "__main__":
    unittest.main()
