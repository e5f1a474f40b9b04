"""Broken files: one clear sentence, exit code 1, at once. Sound controls: exit code 0."""
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY, DATA, SANITIZED, TestCase, qwench, read_json

SECONDS = 10 if SANITIZED else 2
MEMORY = None if SANITIZED else 200 << 20  # the sanitizers' own tables are far larger


def check(path):
    return qwench("inspect", "--check", path, timeout=60)


class Malformed(TestCase):
    def assert_expected(self, outcome, expect, path):
        if expect == "ok":
            self.assertEqual(outcome.code, 0, outcome)
        elif expect == "error" or outcome.code != 0:
            self.assert_fails_cleanly(outcome)
            self.assertIn(os.path.basename(path), outcome.err)
        self.assertLess(outcome.seconds, SECONDS, path)
        if MEMORY:
            self.assertLess(outcome.peak_bytes, MEMORY, path)

    def test_every_file_behaves_as_expected(self):
        rows = read_json("malformed", "expectations.json")
        right = 0
        for row in rows:
            with self.subTest(f"{row['file']}: {row['why']}"):
                path = os.path.join(DATA, "malformed", row["file"])
                self.assertTrue(os.path.exists(path), path)
                self.assert_expected(check(path), row["expect"], path)
                right += 1
        print(f"malformed goldens: {right} of {len(rows)} files")
        self.assertEqual(len(rows), 98)
        self.assertEqual(right, len(rows))

    def test_a_file_cut_short_while_in_use_ends_with_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            # Matrices are packed as they are loaded; an embedding that is not the head too is read from the file.
            for name in ("config.json", "model.safetensors"):
                shutil.copyfile(os.path.join(DATA, "models", "qwen2-tiny-untied-bf16", name), os.path.join(folder, name))
            with subprocess.Popen([BINARY, "score", folder, "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                process.stdin.write(b'{"ids": [1, 2, 3]}\n')
                process.stdin.flush()
                self.assertIn(b"logprobs", process.stdout.readline())
                os.truncate(os.path.join(folder, "model.safetensors"), 4096)
                _, err = process.communicate(b'{"ids": [300, 200, 100]}\n', timeout=60)
            self.assertEqual(process.returncode, 1, err)
            self.assertIn(b"cut short", err)
            self.assertNotIn(b"Sanitizer", err)

    def test_random_damage_never_crashes(self):
        sources = ["safetensors/ok.safetensors", "gguf/ok.gguf", "tokenizer/ok/tokenizer.json"]
        random_source = random.Random(20240607)
        tried = 0
        for source in sources:
            path = os.path.join(DATA, "malformed", source)
            with open(path, "rb") as f:
                sound = f.read()
            for number in range(20 if SANITIZED else 60):
                damaged = bytearray(sound)
                kind = number % 4
                at = random_source.randrange(min(len(damaged), 4096))
                if kind == 0:
                    damaged[at] ^= 1 << random_source.randrange(8)
                elif kind == 1:
                    damaged[at:at + 8] = random_source.choice([b"\xff" * 8, b"\x00" * 8, b"\x7f" + b"\xff" * 7])
                elif kind == 2:
                    del damaged[at:]
                else:
                    del damaged[at:at + random_source.randrange(1, 9)]
                with tempfile.TemporaryDirectory() as folder:
                    broken = os.path.join(folder, os.path.basename(path))
                    with open(broken, "wb") as f:
                        f.write(damaged)
                    with self.subTest(f"{source}, case {number}"):
                        outcome = check(broken)
                        self.assertIn(outcome.code, (0, 1), outcome)
                        self.assert_expected(outcome, "either", broken)
                tried += 1
        print(f"damaged copies: {tried} tried")


class OddPaths(TestCase):
    def test_what_is_no_regular_file(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe.gguf")
            os.mkfifo(pipe)
            directory = os.path.join(folder, "model.gguf")
            os.mkdir(directory)
            loop = os.path.join(folder, "loop.safetensors")
            os.symlink(loop, loop)
            empty = os.path.join(folder, "empty.gguf")
            open(empty, "wb").close()
            for path in (pipe, directory, loop, empty, "/dev/zero"):
                with self.subTest(path):
                    self.assert_fails_cleanly(check(path))

    def test_a_folder_whose_config_is_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "config.json"))
            self.assert_fails_cleanly(check(folder))


if __name__ == "__main__":
    unittest.main()
