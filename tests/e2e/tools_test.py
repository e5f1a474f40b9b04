"""The tools that fetch and convert: damage is noticed, nothing half done is left, other sources are refused."""
import contextlib
import hashlib
import io
import os
import struct
import sys
import tempfile
import unittest
from unittest import mock

from support import CACHE, DATA, ROOT, SMOLLM2, TestCase, fetched

sys.path.insert(0, os.path.join(ROOT, "tools"))
import fetch_models  # noqa: E402
from gguf_file import TYPES, GGUFFile, dequantise  # noqa: E402

NAME = "models/some.gguf"
CONTENT = b"sound content"


class Cache(TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        patch = mock.patch.dict(fetch_models.SUMS, {NAME: hashlib.sha256(CONTENT).hexdigest()})
        patch.start()
        self.addCleanup(patch.stop)
        quiet = contextlib.redirect_stderr(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def put(self, content):
        fetch_models.Cache(self.folder).put_bytes(NAME, content, self.folder)

    def test_a_sound_file_is_kept_and_found_again(self):
        self.put(CONTENT)
        self.assertTrue(fetch_models.Cache(self.folder).has(NAME))

    def test_a_wrong_checksum_keeps_nothing(self):
        with self.assertRaisesRegex(fetch_models.Failure, "SHA-256"):
            self.put(b"something else")
        self.assertFalse(os.path.exists(os.path.join(self.folder, NAME)))

    def test_later_damage_is_noticed(self):
        self.put(CONTENT)
        with open(os.path.join(self.folder, NAME), "r+b") as f:
            f.write(b"X")
        os.utime(os.path.join(self.folder, NAME), ns=(1, 1))
        self.assertFalse(fetch_models.Cache(self.folder).has(NAME))

    def test_a_spoiled_note_only_costs_time(self):
        self.put(CONTENT)
        with open(os.path.join(self.folder, "verified.json"), "w", encoding="utf-8") as f:
            f.write("[1")
        self.assertTrue(fetch_models.Cache(self.folder).has(NAME))


class GGUF(TestCase):
    def test_metadata_and_tensors_of_a_real_file(self):
        gguf = GGUFFile(fetched(SMOLLM2))
        self.assertEqual(gguf.metadata["general.architecture"], "llama")
        self.assertEqual(len(gguf.metadata["tokenizer.ggml.tokens"]), 49152)
        self.assertEqual(gguf.rows("blk.0.attn_q.weight", 3, 2).shape, (2, 576))

    def test_a_block_of_each_type_by_hand(self):
        import numpy as np
        one, two = struct.pack("<e", 1.0), struct.pack("<e", 2.0)
        cases = {"Q8_0": (two + bytes([1, 255] * 16), [2, -2] * 16),
                 "Q4_0": (one + bytes([0x80] * 16), [-8] * 16 + [0] * 16),
                 "Q4_1": (one + two + bytes([0x31] * 16), [3] * 16 + [5] * 16),
                 "Q5_0": (one + b"\xff" * 4 + bytes(16), [0] * 32),
                 "Q5_1": (one + two + b"\x00" * 4 + bytes([0x21] * 16), [3] * 16 + [4] * 16)}
        sizes = {name: size for name, _, size in TYPES.values()}
        for kind, (block, expected) in cases.items():
            with self.subTest(kind):
                self.assertEqual(len(block), sizes[kind])
                values = dequantise(np.frombuffer(block, np.uint8).reshape(1, -1), kind)
                self.assertEqual(values.tolist(), [[float(value) for value in expected]])

    def test_what_is_no_gguf_is_refused(self):
        with self.assertRaises(ValueError):
            GGUFFile(os.path.join(DATA, "malformed", "gguf", "magic.gguf"))


class Fetched(TestCase):
    def test_everything_the_tests_use_is_there_and_whole(self):
        cache = fetch_models.Cache(CACHE)
        self.assertEqual(cache.missing(list(fetch_models.SUMS)), [], "run ./dev fetch-models")


if __name__ == "__main__":
    unittest.main()
