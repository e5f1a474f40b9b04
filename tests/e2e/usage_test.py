"""Help, exit codes and the sentences for a model that is not there."""
import os
import subprocess
import tempfile
import unittest

from support import BINARY, ROOT, TestCase, qwench

COMMANDS = ("run", "chat", "tokenize", "template", "score", "bench", "inspect", "pull", "models")
DEV_COMMANDS = ("deps", "build", "run", "test", "bench", "lint", "fmt", "fetch-models")


class Help(TestCase):
    def test_the_program_lists_its_commands(self):
        outcome = qwench("--help")
        self.assertEqual(outcome.code, 0, outcome)
        for command in COMMANDS:
            self.assertIn(command, outcome.out)

    def test_every_command_has_help(self):
        for command in COMMANDS:
            with self.subTest(command):
                outcome = qwench(command, "--help")
                self.assertEqual(outcome.code, 0, outcome)
                self.assertGreater(len(outcome.out.splitlines()), 3, outcome)
                self.assertEqual(outcome.err, "", outcome)

    def test_familiar_flags_are_in_the_help_of_run(self):
        text = qwench("run", "--help").out
        for flag in ("-m", "-p", "-n", "-c", "-t", "-s", "-f", "--temp", "--top-k", "--top-p", "--min-p", "--system",
                     "--raw", "--think", "--no-think", "--json", "--jsonl", "--dtype", "--verbose"):
            self.assertRegex(text, rf"(^|[\s,\[]){flag}\b")

    def test_version(self):
        outcome = qwench("--version")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.out, r"\d+\.\d+\.\d+")


class UsageErrors(TestCase):
    def test_each_gives_exit_code_2_and_says_why(self):
        for arguments in (["fly"], ["--fly"], ["run", "--fly"], ["run", "somewhere", "--temp", "hot"],
                          ["run", "somewhere", "--top-k", "1.5"], ["run", "somewhere", "-n"], ["tokenize"], ["inspect"],
                          ["run", "somewhere", "-n", "99999999999999999999"], ["run", "somewhere", "--dtype", "int3"]):
            with self.subTest(" ".join(arguments)):
                outcome = qwench(*arguments)
                self.assertEqual(outcome.code, 2, outcome)
                self.assertEqual(outcome.out, "", outcome)
                self.assertGreater(len(outcome.err.split()), 2, outcome)

    def test_no_arguments_show_what_there_is(self):
        outcome = qwench()
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("run", outcome.out + outcome.err)


class MissingModels(TestCase):
    def test_the_sentence_names_the_place_and_what_to_type(self):
        for arguments in (["run", "/nowhere/model.gguf", "hello"], ["run", "-m", "/nowhere/model.gguf", "-p", "hello"],
                          ["chat", "/nowhere/model.gguf"], ["tokenize", "/nowhere/model.gguf", "hello"],
                          ["template", "/nowhere/model.gguf"], ["score", "/nowhere/model.gguf", "--jsonl"],
                          ["bench", "/nowhere/model.gguf"], ["inspect", "--check", "/nowhere/model.gguf"]):
            with self.subTest(" ".join(arguments)):
                outcome = qwench(*arguments)
                self.assert_fails_cleanly(outcome)
                self.assertIn("/nowhere/model.gguf", outcome.err)

    def test_a_folder_without_a_checkpoint_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            outcome = qwench("run", folder, "hello")
            self.assert_fails_cleanly(outcome)
            self.assertIn(folder, outcome.err)

    def test_a_file_that_is_no_model_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "notes.txt")
            with open(path, "w", encoding="utf-8") as f:
                f.write("not a model\n")
            outcome = qwench("run", path, "hello")
            self.assert_fails_cleanly(outcome)
            self.assertIn(path, outcome.err)

    def test_a_name_with_control_characters_stays_one_line(self):
        outcome = qwench("run", "/nowhere/a\nb\x1b[31mc", "hello")
        self.assert_fails_cleanly(outcome)
        self.assertNotIn("\x1b", outcome.err)

    def test_a_reader_that_goes_away_does_not_hang_or_crash_the_program(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([BINARY, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=30, check=False)
        self.assertGreaterEqual(done.returncode, 0)


class Dev(TestCase):
    def dev(self, *arguments):
        return subprocess.run([os.path.join(ROOT, "dev"), *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_every_command_prints_its_help_with_examples(self):
        for command in DEV_COMMANDS:
            with self.subTest(command):
                done = self.dev(command, "--help")
                self.assertEqual(done.returncode, 0, done)
                self.assertIn("Examples:", done.stdout)
                self.assertIn(f"./dev {command}", done.stdout)

    def test_an_unknown_command_is_a_usage_error(self):
        done = self.dev("fly")
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("fly", done.stderr)

    def test_unknown_options_are_usage_errors(self):
        for arguments in (["deps", "--fly"], ["build", "--fly"], ["fetch-models", "--fly"], ["run", "--model"]):
            with self.subTest(" ".join(arguments)):
                self.assertEqual(self.dev(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
