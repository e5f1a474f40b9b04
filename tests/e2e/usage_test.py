"""Help, exit codes and the sentences for a model that is not there."""
import os
import signal
import subprocess
import tempfile
import time
import unittest

from support import BINARY, DATA, ROOT, SMOLLM2, TestCase, fetched, jsonl, qwench

COMMANDS = ("run", "chat", "tokenize", "template", "score", "bench", "inspect", "plan", "pull", "models", "verify", "trace", "perplexity",
            "compare")
DEV_COMMANDS = ("deps", "build", "run", "test", "bench", "fuzz", "lint", "fmt", "fetch-models")


TINY = os.path.join(DATA, "models", "qwen3-tiny-f32")


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

    def test_help_of_a_command_comes_either_way(self):
        for command in COMMANDS:
            self.assertEqual(qwench("help", command).out, qwench(command, "--help").out)

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

    def test_a_misspelt_option_or_command_is_named_with_what_was_meant(self):
        for arguments, words in ((["run", "x", "--temprature", "0"], ["'--temprature'", "--temperature?"]),
                                 (["rnu", "x"], ["'rnu'", "did you mean run?"]),
                                 (["help", "chta"], ["'chta'", "did you mean chat?"]),
                                 (["run", "x", "Why", "is", "it"], ["put it in quotes", "is it"]),
                                 (["tokenize", "x", "Why", "not"], ["put it in quotes", "not"]),
                                 (["score", "x", "Why", "not"], ["put it in quotes", "not"]),
                                 (["chat", "x", "hello"], ["hello"]),
                                 (["run", "x", "--threads", "-1"], ["expected a whole number from 0, found -1"])):
            with self.subTest(" ".join(arguments)):
                outcome = qwench(*arguments)
                self.assert_fails_cleanly(outcome, 2)
                for word in words:
                    self.assertIn(word, outcome.err)

    def test_a_prompt_in_the_place_of_the_model_is_seen(self):
        for arguments, words in ((["run", "Why is the sky blue?"], ["-p", "default model"]), (["run", "Hello"], ["-p"]),
                                 (["tokenize", "Hello, world"], ["name a model first"]),
                                 (["score", "Hello, world"], ["name a model first"])):
            with self.subTest(" ".join(arguments)):
                outcome = qwench(*arguments)
                self.assert_fails_cleanly(outcome)
                self.assertIn("the first argument names the model", outcome.err)
                for word in words:
                    self.assertIn(word, outcome.err)

    def test_an_empty_prompt_is_refused_before_a_model_is_loaded(self):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            empty = file.name
        self.addCleanup(os.remove, empty)
        for arguments, stdin in ((["run", TINY, ""], ""), (["run", TINY], ""), (["run", TINY], "\n"),
                                 (["run", TINY, "--raw", "-p", ""], ""), (["score", TINY], ""), (["run", TINY, "-f", empty], "")):
            with self.subTest(f"{arguments} {stdin!r}"):
                outcome = qwench(*arguments, stdin=stdin)
                self.assert_fails_cleanly(outcome, 2)
                self.assertIn("empty", outcome.err)

    def test_a_text_may_come_from_a_pipe_that_a_shell_names(self):
        done = subprocess.run(["bash", "-c", f'"{BINARY}" score "{fetched(SMOLLM2)}" -f <(echo "Hello, dear world")'],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("tokens scored", done.stdout)

    def test_a_model_without_a_tokenizer_says_how_ids_are_given(self):
        outcome = qwench("run", TINY, "hello")
        self.assert_fails_cleanly(outcome)
        self.assertIn("""echo '{"ids": [1, 2]}' | qwench run MODEL --jsonl""", outcome.err)

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


class Limits(TestCase):
    def test_threads_beyond_the_cores_are_cut_with_a_warning(self):
        outcome = qwench("score", TINY, "--jsonl", "-t", "999", stdin='{"ids": [1, 2, 3]}\n', timeout=60)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.err, r"warning: 999 threads .* \d+ cores?")

    def test_bench_fits_its_defaults_to_the_context(self):
        outcome = qwench("bench", TINY, "-c", "96", "--batch", "1", "--repeat", "1")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("prefill 96", outcome.out)
        self.assertIn("so -p is 96", outcome.err)
        for flags in (["-p", "97"], ["-d", "90", "-n", "7"], ["-d", "96"], ["-n", "97"]):
            with self.subTest(flags):
                outcome = qwench("bench", TINY, "-c", "96", *flags)
                self.assertEqual(outcome.code, 2, outcome)
                self.assertIn(f"{flags[0]} {flags[1]}", outcome.err)
                self.assertIn("96 positions", outcome.err)

    def test_bench_shows_the_same_numbers_as_table_json_and_csv(self):
        flags = ["-p", "16", "-n", "3", "-b", "1,2", "-d", "0,40", "-r", "2"]
        table = qwench("bench", TINY, *flags)
        self.assertEqual(table.code, 0, table)
        names = ["prefill 16", "decode x1", "decode x2", "prefill 16 @ 40", "decode x1 @ 40", "decode x2 @ 40"]
        for name in names:
            self.assertIn("\n" + name + " ", table.out)
        report, = qwench("bench", TINY, *flags, "--json").lines()
        self.assertEqual([test["test"] for test in report["tests"]], names)
        for test in report["tests"]:
            self.assertEqual(len(test["seconds"]), 2)
            self.assertGreater(test["tokens_per_second"], 0)
            self.assertAlmostEqual(test["share_of_read"] * report["limits"]["read_gb_per_s"], test["gb_per_s"], delta=1e-6)
        csv = qwench("bench", TINY, *flags, "--csv").out.splitlines()
        self.assertEqual([line.split(",")[0] for line in csv[1:]], names)
        self.assertEqual({len(line.split(",")) for line in csv}, {12})
        self.assert_fails_cleanly(qwench("bench", TINY, "--json", "--csv"), code=2)

    def test_bench_measures_the_machine_without_a_model(self):
        report, = qwench("bench", "--machine", "--json").lines()
        self.assertGreaterEqual(len(report["limits"]), 1)
        for limits in report["limits"]:
            self.assertGreater(limits["read_gb_per_s"], 0)
            self.assertGreater(limits["f32_gflop_per_s"], 0)
        self.assert_fails_cleanly(qwench("bench", TINY, "--machine"), code=2)
        self.assert_fails_cleanly(qwench("bench"), code=2)

    def test_bench_profile_shows_the_operations_of_a_prefill_and_of_a_decode_step(self):
        outcome = qwench("bench", TINY, "-p", "16", "-n", "2", "-b", "1", "-r", "1", "--profile")
        self.assertEqual(outcome.code, 0, outcome)
        for text in ("prefill of 16 tokens", "decode at position 16", "attention", "the whole step"):
            self.assertIn(text, outcome.out)

    def test_unknown_fields_come_with_the_known_ones(self):
        answer, = jsonl("run", TINY, rows=[{"ids": [1], "max_token": 4}])
        for word in ('"max_token"', "max_tokens", "messages", "logprobs"):
            self.assertIn(word, answer["error"])

    def test_check_of_a_part_names_the_folder(self):
        outcome = qwench("inspect", "--check", os.path.join(TINY, "config.json"))
        self.assert_fails_cleanly(outcome)
        self.assertIn(f"name the folder, {TINY}", outcome.err)
        outcome = qwench("inspect", "--check", os.path.join(ROOT, "README.md"))
        self.assert_fails_cleanly(outcome)
        self.assertIn("tokenizer.json", outcome.err)


class Answers(TestCase):
    """On a real model: what is said beside an answer."""

    def test_a_drawn_seed_is_told_and_gives_the_answer_again(self):
        common = ["run", fetched(SMOLLM2), "Tell me a story.", "-n", "12", "--temp", "1"]
        first = qwench(*common, "--json").lines()[0]
        self.assertIsInstance(first["settings"]["seed"], int)
        again = qwench(*common, "--json", "--seed", first["settings"]["seed"]).lines()[0]
        self.assertEqual(again["ids"], first["ids"])
        self.assertRegex(qwench(*common, "-v").err, r'"seed":\d+')
        self.assertIsNone(qwench(*common[:-1], "0", "--json").lines()[0]["settings"]["seed"])

    def test_the_last_line_says_what_cut_the_answer(self):
        common = ["run", fetched(SMOLLM2), "Tell me a long story.", "--temp", "0"]
        self.assertIn("| cut at -n 3", qwench(*common, "-n", "3").err)
        self.assertIn("| cut: the context of 64 is full (-c)", qwench(*common, "-c", "64").err)
        short = qwench("run", fetched(SMOLLM2), "What is the capital of France?", "--temp", "0", "-n", "60")
        self.assertNotIn("cut", short.err)

    def test_a_prompt_that_is_no_utf8_is_answered_with_a_warning(self):
        outcome = qwench("run", fetched(SMOLLM2), "-n", "1", stdin=b"caf\xe9 au lait\n")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual(outcome.err.count("UTF-8"), 1, outcome)

    def chat_on_a_pipe(self):
        process = subprocess.Popen([BINARY, "chat", fetched(SMOLLM2), "-n", "2000", "-c", "2048", "--ignore-eos"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        process.stderr.readline()  # the banner: it is loaded
        time.sleep(0.3)
        return process

    def test_control_c_ends_a_chat_on_a_pipe_that_waits(self):
        process = self.chat_on_a_pipe()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)

    def test_control_c_ends_a_chat_on_a_pipe_that_answers(self):
        process = self.chat_on_a_pipe()
        process.stdin.write(b"Count to a thousand.\n")
        process.stdin.flush()
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)

    def test_a_conversation_that_outgrows_the_context_names_reset(self):
        outcome = qwench("chat", fetched(SMOLLM2), "-c", "64", stdin="word " * 200 + "\n")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("/reset", outcome.err)
        self.assertIn("-c", outcome.err)


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
