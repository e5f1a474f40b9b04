"""The documentation is run: every command line in it, and every link inside it.

Convention: a fenced block marked sh holds commands, one a line (a backslash continues it); each is run with a small model
in the place of MODEL. A block marked console is a transcript and is only looked at.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY, ROOT, SANITIZED, SMOLLM2, TestCase, fetched

PAGES = ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md", root_dir=ROOT))]
# Commands of other programs, which a page may show but a test must not run.
FOREIGN = ("git ", "cd ", "sudo ", "cmake ", "ctest ", "ninja ", "export ", "perf ", "clang")
MODEL_WORDS = re.compile(r"\bMODEL\b|~/models/[\w.-]+|~/huggingface/[\w.-]+")


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read()


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text):
    """Joined lines of a block: a quoted text or a backslash at the end goes on in the next line."""
    for block in blocks(text, "sh"):
        line = ""
        for part in block.splitlines():
            line = f"{line}\n{part}" if line else part
            if line.endswith("\\"):
                continue
            if line.count("'") % 2 and "<<" not in line:
                continue
            if line.strip() and not line.lstrip().startswith("#"):
                yield line.removeprefix("$ ")
            line = ""


class Documentation(TestCase):
    def run_line(self, line, folder):
        environment = {**os.environ, "PATH": os.path.dirname(BINARY) + os.pathsep + os.environ["PATH"],
                       "MODEL_PATH": fetched(SMOLLM2)}
        line = re.sub(r"^\./dev run\b", "qwench run", line)
        if line.startswith("qwench run ") and "MODEL" not in line and "--model" not in line and "-m " not in line:
            line = line.replace("qwench run ", 'qwench run -m "$MODEL_PATH" ', 1)
        line = MODEL_WORDS.sub('"$MODEL_PATH"', line)
        if "--jsonl" not in line and not re.search(r" -n ", line):
            line = re.sub(r"\bqwench (run|chat) (?!--help)", r"qwench \1 -n 8 ", line)
        return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)

    def check_dev_line(self, line):
        """./dev is not run from inside its own tests: its command and options must be in its help."""
        words = line.split()
        if len(words) == 1 or words[1].startswith("-") or words[1] == "COMMAND":
            return
        done = subprocess.run([os.path.join(ROOT, "dev"), words[1], "--help"], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, line)
        for word in words[2:]:
            if word.startswith("--") and word != "--help":
                self.assertIn(word.split("=")[0], done.stdout + "--benchmark_filter", line)

    @unittest.skipIf(SANITIZED, "the plain build runs the same lines")
    def test_every_command_works(self):
        count = 0
        with tempfile.TemporaryDirectory() as folder:
            for page in PAGES:
                for line in commands(read(page)):
                    with self.subTest(f"{page}: {line}"):
                        count += 1
                        if line.startswith(FOREIGN):
                            self.assertIsNotNone(shutil.which("bash"))
                        elif line.startswith("./dev") and not line.startswith("./dev run"):
                            self.check_dev_line(line)
                        else:
                            done = self.run_line(line, folder)
                            self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        print(f"documentation: {count} command lines")
        self.assertGreater(count, 10)

    def test_links_lead_somewhere(self):
        count = 0
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
                if "://" in target or target.startswith("#"):
                    continue
                with self.subTest(f"{page}: {target}"):
                    path = os.path.join(ROOT, os.path.dirname(page), target.split("#")[0])
                    self.assertTrue(os.path.exists(path), path)
                count += 1
        self.assertGreater(count, 3)

    def test_paths_named_in_the_architecture_exist(self):
        for path in re.findall(r"`((?:src|include|tests|tools|docs|bench|fuzz|cmake)/[\w./-]+)`",
                               read("docs/architecture.md")):
            with self.subTest(path):
                self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)


if __name__ == "__main__":
    unittest.main()
