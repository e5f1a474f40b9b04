"""What the end-to-end tests share: the built program, the test data, the cache of fetched files."""
import json
import os
import resource
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DATA = os.path.join(ROOT, "tests", "data")
BINARY = os.environ.get("QWENCH_BINARY", os.path.join(ROOT, "build", "release", "bin", "qwench"))
SANITIZED = bool(os.environ.get("QWENCH_SANITIZE"))
CACHE = os.environ.get("QWENCH_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "qwench")
SMOLLM2 = os.path.join(CACHE, "models", "smollm2-135m-instruct-q4_1.gguf")
CODER = os.path.join(CACHE, "models", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")


def fetched(path):
    """A path in the cache, or a failure that says how to get it."""
    if not os.path.exists(path):
        raise AssertionError(f"{path} is missing: run ./dev fetch-models")
    return path


def tokenizer(family):
    fetched(os.path.join(CACHE, "tokenizers", family, "tokenizer.json"))
    return os.path.join(CACHE, "tokenizers", family)


class Outcome:
    """What one run of the program gave."""

    def __init__(self, code, out, err, seconds, peak_bytes):
        self.code, self.out, self.err = code, out, err
        self.seconds, self.peak_bytes = seconds, peak_bytes

    def lines(self):
        return [json.loads(line) for line in self.out.split("\n") if line]  # splitlines would also split at U+2028

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"


def qwench(*arguments, stdin="", env=None, timeout=600):
    """Run the program with its standard streams in files, so that nothing can block."""
    environment = {**os.environ, **(env or {})}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogatepass"))
        given.seek(0)
        begin = time.monotonic()
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdin=given, stdout=out, stderr=err, env=environment)
        killed = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - begin > timeout and not killed:
                process.kill()
                killed = True
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        out.seek(0)
        err.seek(0)
        outcome = Outcome(process.returncode, out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace"),
                          seconds, usage.ru_maxrss * 1024)
    if killed:
        raise AssertionError(f"qwench {' '.join(map(str, arguments))} did not end within {timeout} s\n{outcome}")
    return outcome


def jsonl(*arguments, rows, env=None, timeout=600):
    """Feed objects (or raw lines) to a --jsonl mode; one answer a line must come back, in order."""
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    outcome = qwench(*arguments, "--jsonl", stdin=text, env=env, timeout=timeout)
    if outcome.code != 0:
        raise AssertionError(f"qwench {' '.join(map(str, arguments))} --jsonl failed: {outcome}")
    answers = outcome.lines()
    if len(answers) != len(rows):
        raise AssertionError(f"{len(rows)} lines in, {len(answers)} out: {outcome}")
    return answers


def read_json(*parts):
    with open(os.path.join(DATA, *parts), encoding="utf-8") as f:
        return json.load(f)


def read_jsonl(*parts):
    with open(os.path.join(DATA, *parts), encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


class TestCase(unittest.TestCase):
    maxDiff = 4000

    def assert_fails_cleanly(self, outcome, code=1):
        """One sentence on stderr, nothing on stdout, the right exit code."""
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.out, "", outcome)
        self.assertEqual(len(outcome.err.splitlines()), 1, outcome)
        self.assertGreater(len(outcome.err.split()), 3, outcome)
        for word in ("terminate called", "Sanitizer", "std::", "what():", "Assertion"):
            self.assertNotIn(word, outcome.err, outcome)
