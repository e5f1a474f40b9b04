"""The example programs, as an embedding program's author would run them."""
import os
import subprocess
import unittest

from support import BINARY, SMOLLM2, TestCase, fetched


class Examples(TestCase):
    def run_example(self, name, *arguments):
        return subprocess.run([os.path.join(os.path.dirname(BINARY), name), *arguments], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300, check=False)

    def test_prompts_are_continued_side_by_side(self):
        done = self.run_example("stream_completions", fetched(SMOLLM2), "The capital of France is", "One, two, three,")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("The capital of France is Paris", done.stdout)
        self.assertIn("One, two, three, four", done.stdout)
        self.assertEqual(done.stdout.count(" tokens]\n"), 2, done)

    def test_a_missing_model_is_one_sentence(self):
        done = self.run_example("stream_completions", "/nowhere", "Hello")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("/nowhere", done.stderr)
        self.assertEqual(self.run_example("stream_completions").returncode, 2)


if __name__ == "__main__":
    unittest.main()
