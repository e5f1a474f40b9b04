"""The documentation is run: every command line in it, and every link inside it.

Convention: in a fenced block a line that begins with "./dev", "qwench", "echo" or "$ " is a command (a block marked sh holds
nothing else). It is run with a small model in the place of MODEL and of paths such as ~/models/Qwen3-0.6B or model.gguf. What
stands below a "$ " line is its output, which is compared where it does not depend on the model's weights.
"""
import glob
import os
import re
import subprocess
import tempfile
import unittest

from fake_hub import FakeHub
from support import BINARY, ROOT, SANITIZED, SMOLLM2, TestCase, fetched, tokenizer

TOUR = "docs/tour.md"  # a walk with one model, whose output is compared
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md", root_dir=ROOT))]
COMMAND = re.compile(r"^(\$ )?(\./dev|qwench|echo|printf|git diff \| qwench)(?=\s|$)")
# Commands of other programs, which a page may show but a test must not run.
FOREIGN = re.compile(r"^(\$ )?(git clone|cd|sudo|cmake|ctest|ninja|export|clang)")
MODEL_WORDS = re.compile(r"\bMODEL\b|~/models/[\w.-]+|~/huggingface/[\w.-]+|\bmodel\.gguf\b")


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read()


def models_on_the_hub():
    """Small models under the names that the pages pull."""
    def content(*parts):
        with open(os.path.join(ROOT, "tests", "data", *parts), "rb") as f:
            return f.read()
    folder = {name: content("models", "llama-tiny", name) for name in ("config.json", "model.safetensors")}
    return {"Qwen/Qwen3-0.6B": folder,
            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF": {"coder-q4_k_m.gguf": content("malformed", "gguf", "ok.gguf"), "coder-f16.gguf": b""}}


def commands(text):
    """(command, expected output) of every fenced block; the output is "" where the page shows none."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        found = []
        for line in block.splitlines():
            if found and found[-1][0].endswith("\\"):
                found[-1][0] = f"{found[-1][0]}\n{line}"
            elif COMMAND.match(line) or FOREIGN.match(line):
                found.append([line, []])
            elif found and found[-1][0].startswith("$ "):
                found[-1][1].append(line)
            elif language == "sh" and line.strip() and not line.startswith("#"):
                raise AssertionError(f"not known how to test this line: {line}")
        for line, output in found:
            yield line.removeprefix("$ "), "\n".join(output)


def begins_like(line, wanted):
    fraction = re.compile(r"-?\d+\.\d+")
    found = fraction.findall(line)
    expected = fraction.findall(wanted)
    return fraction.sub("#", line).startswith(fraction.sub("#", wanted)) and all(
        abs(float(one) - float(other)) <= 0.005 for one, other in zip(found, expected))


class Documentation(TestCase):
    def run_line(self, line, folder, page):
        environment = {**os.environ, "PATH": os.path.dirname(BINARY) + os.pathsep + os.environ["PATH"],
                       "MODEL_PATH": fetched(SMOLLM2), "HF_HUB_CACHE": os.path.join(folder, "hub"), "HF_ENDPOINT": self.hub.url,
                       "MODELSCOPE_ENDPOINT": self.hub.url, "HF_HUB_OFFLINE": "", "NO_PROXY": "*"}
        if "qwench tokenize" in line and page != TOUR:
            environment["MODEL_PATH"] = tokenizer("qwen3")
        if "qwench serve" in line and "--help" not in line:  # until it is told to end, which it does with 0
            line = line.replace("qwench serve", "timeout --preserve-status 5 qwench serve") + " --port 0"
        line = re.sub(r"^\./dev run\b", "qwench run", line).replace("git diff", "echo '+ a line'")
        line = re.sub(r"\[(-[^]]*)\]", r"\1", line)  # a synopsis: with all of its options
        if "qwench run" in line:  # a name that was pulled
            line = line.replace("Qwen/Qwen3-0.6B", "MODEL")
        line = MODEL_WORDS.sub('"$MODEL_PATH"', line)
        if "qwench run" in line and "MODEL_PATH" not in line:
            line = line.replace("qwench run", 'qwench run -m "$MODEL_PATH"', 1)
        if "qwench bench" in line and "--machine" not in line:  # as written, but short
            for flag, value in {"-p": "32", "-n": "4", "-d": "8", "-b": "1,2", "-r": "1"}.items():
                line, known = re.subn(rf" {flag} \S+", f" {flag} {value}", line)
                line += "" if known else f" {flag} {value}"
        elif "jsonl" not in line and " -n " not in line:
            line = re.sub(r"\bqwench (run|chat) (?!--help)", r"qwench \1 -n 8 ", line)
        return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)

    def assert_shows(self, shown, promised, line):
        """Each line of what the tour shows begins a line of the true output, in this order; white space aside, and fractions to
        0.005, as instruction sets round differently."""
        lines = [" ".join(each.split()) for each in shown.splitlines()]
        at = 0
        for wanted in promised.splitlines():
            wanted = " ".join(re.sub(r" +\d+ MB .*$", "", wanted).split())
            found = [i for i in range(at, len(lines)) if begins_like(lines[i], wanted)]
            self.assertTrue(found, f"{line}: no line begins with {wanted!r}\n{shown[:2000]}")
            at = 0 if "--totals" in line else found[0] + 1  # totals are in the order of their times

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
                self.assertIn(word.split("=")[0], done.stdout, line)

    @unittest.skipIf(SANITIZED, "the plain build runs the same lines")
    def test_every_command_works(self):
        count = 0
        with tempfile.TemporaryDirectory() as folder, FakeHub(models_on_the_hub()) as self.hub:
            for name, content in (("chapter.txt", "Call me Ishmael. Some years ago, never mind how long.\n"),
                                  ("my.jinja", "{{ messages[0].content }}"),
                                  ("requests.jsonl", '{"messages": [{"role": "user", "content": "Hi"}]}\n')):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(content)
            os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
            for page in PAGES:
                for line, output in commands(read(page)):
                    with self.subTest(f"{page}: {line}"):
                        count += 1
                        if FOREIGN.match(line) or "COMMAND" in line:
                            continue
                        if line.startswith("./dev") and not line.startswith("./dev run"):
                            self.check_dev_line(line)
                            continue
                        done = self.run_line(line, folder, page)
                        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
                        if page == TOUR:
                            self.assert_shows(done.stdout, output, line)
                        elif output and "qwench tokenize" in line:
                            self.assertEqual(done.stdout.rstrip("\n"), output)
        print(f"documentation: {count} command lines")
        self.assertGreater(count, 15)

    def test_links_lead_somewhere(self):
        count = 0
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
                if "://" in target:
                    continue
                file, _, anchor = target.partition("#")
                path = os.path.join(os.path.dirname(page), file) if file else page
                with self.subTest(f"{page}: {target}"):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)
                    if anchor:
                        headings = [re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-")
                                    for h in re.findall(r"^#+ (.*)$", read(path), re.MULTILINE)]
                        self.assertIn(anchor, headings)
                count += 1
        self.assertGreater(count, 3)

    def test_paths_named_in_the_documentation_exist(self):
        for page in PAGES:
            for path in re.findall(r"`((?:src|include|tests|tools|docs|bench|fuzz|cmake)/[\w./-]+)`", read(page)):
                if "NAME" not in path:
                    with self.subTest(f"{page}: {path}"):
                        self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)


if __name__ == "__main__":
    unittest.main()
