"""`qwench models`, models by name in other commands, and the same cache used from Python."""
import contextlib
import importlib.util
import json
import os
import pty
import subprocess
import sys
import unittest

from fake_hub import COMMIT, sha256
from hub_case import GGUF, NEEDED, REPO, TINY, WEIGHTS, PullCase, read
from support import BINARY, qwench


class Models(PullCase):
    def list(self):
        outcome = self.qwench("models", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        return json.loads(outcome.out)

    def test_a_name_serves_as_model(self):
        self.pull()
        line = '{"ids": [1, 2, 3], "max_tokens": 4, "temperature": 0}\n'
        by_path, by_name = (qwench("run", model, "--jsonl", stdin=line, env=self.env) for model in (TINY, REPO))
        self.assertEqual((by_name.code, by_name.out), (0, by_path.out), by_name)
        self.assertIn("Llama-Tiny |", by_name.err)

    def test_a_name_that_is_not_there_says_what_to_type(self):
        for arguments in (["run", "Some/Model", "hi"], ["inspect", "--check", "Some/Model"], ["tokenize", "-m", "Some/Model", "hi"]):
            outcome = self.qwench(*arguments)
            self.assert_fails_cleanly(outcome)
            self.assertIn("qwench pull Some/Model", outcome.err)

    def test_the_list(self):
        self.assertIn("qwench pull", self.qwench("models").err)
        self.pull()
        self.hub.repos["Test/Tiny-GGUF"] = {"tiny-q8_0.gguf": GGUF}
        self.pull("Test/Tiny-GGUF")
        table = self.qwench("models").out.splitlines()
        self.assertEqual(len(table), 3, table)
        self.assertRegex(table[1], rf"^{REPO} +{COMMIT[:12]} +\d.* kB +safetensors \w+ +llama +0 min ago$")
        one, two = self.list()
        self.assertEqual((one["name"], one["commit"], one["refs"], one["format"], one["family"]),
                         (REPO, COMMIT, ["main"], "safetensors", "llama"))
        self.assertEqual(one["bytes"], sum(len(self.hub.repos[REPO][name]) for name in NEEDED))
        self.assertEqual((two["name"], two["format"], two["bytes"]), ("Test/Tiny-GGUF:q8_0", "gguf", len(GGUF)))
        self.assertEqual(self.qwench("inspect", "--check", two["name"]).code, 0)

    def test_rm_asks_or_needs_yes(self):
        self.pull()
        outcome = self.qwench("models", "rm", REPO)
        self.assert_fails_cleanly(outcome, code=2)
        self.assertTrue(os.path.exists(self.repo_folder()))
        outcome = self.qwench("models", "rm", "--yes", REPO)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertFalse(os.path.exists(self.repo_folder()))
        self.assertEqual(self.list(), [])
        self.assertEqual(self.qwench("models", "rm", "--yes", REPO).code, 1)

    def test_rm_of_a_revision_keeps_what_others_use(self):
        self.pull()
        self.pull(f"{REPO}@refs/pr/1")
        other = os.path.join(self.repo_folder(), "snapshots", "1" * 40)
        os.mkdir(other)
        os.symlink(f"../../blobs/{sha256(self.hub.repos[REPO][WEIGHTS])}", os.path.join(other, WEIGHTS))
        self.assertEqual(self.qwench("models", "rm", "--yes", f"{REPO}@main").code, 0)
        self.assertEqual(os.listdir(os.path.join(self.repo_folder(), "blobs")), [sha256(self.hub.repos[REPO][WEIGHTS])])
        self.assertEqual([name for _, _, names in os.walk(os.path.join(self.repo_folder(), "refs")) for name in names], [])
        self.assertEqual([(m["name"], m["commit"]) for m in self.list()], [(f"{REPO}@{'1' * 40}", "1" * 40)])
        self.assertEqual(self.qwench("models", "rm", "--yes", f"{REPO}@{'1' * 40}").code, 0)
        self.assertFalse(os.path.exists(self.repo_folder()))

    def test_rm_of_one_gguf_model(self):
        self.hub.repos["Test/Tiny-GGUF"] = {"tiny-q8_0.gguf": GGUF, "tiny-f16.gguf": GGUF + bytes(32)}
        for choice in ("q8_0", "F16"):
            self.assertEqual(self.pull(f"Test/Tiny-GGUF:{choice}").code, 0)
        self.assertEqual(self.qwench("models", "rm", "-y", "Test/Tiny-GGUF:f16").code, 0)
        self.assertEqual([m["name"] for m in self.list()], ["Test/Tiny-GGUF:q8_0"])
        self.assertEqual(os.listdir(os.path.join(self.repo_folder("Test/Tiny-GGUF"), "blobs")), [sha256(GGUF)])

    def test_links_out_of_the_cache_are_not_followed(self):
        self.pull()
        outside = os.path.join(self.folder, "outside")
        os.mkdir(outside)
        precious = os.path.join(outside, "precious.safetensors")
        with open(precious, "w", encoding="utf-8") as f:
            f.write("mine")
        snapshot = os.path.join(self.repo_folder(), "snapshots", COMMIT)
        os.symlink(precious, os.path.join(snapshot, "other.safetensors"))
        os.symlink(outside, os.path.join(snapshot, "folder"))
        os.symlink(outside, os.path.join(self.repo_folder(), "snapshots", "2" * 40))
        os.symlink(outside, self.repo_folder("Test/Linked"))
        self.assertEqual([m["bytes"] for m in self.list()], [sum(len(self.hub.repos[REPO][name]) for name in NEEDED)])
        self.assertEqual(self.qwench("models", "rm", "--yes", "Test/Linked").code, 2)
        self.assertEqual(self.qwench("models", "rm", "--yes", f"{REPO}@{'2' * 40}").code, 2)
        self.assertEqual(self.qwench("models", "rm", "--yes", REPO).code, 0)
        self.assertEqual(read(precious), b"mine")

    def test_rm_leaves_alone_what_is_being_pulled(self):
        self.hub.on(f"content {WEIGHTS}", {"pause": 0.15})
        process = self.start("pull", REPO)
        self.wait_until(lambda: self.hub.content_requests(WEIGHTS))
        outcome = self.qwench("models", "rm", "--yes", REPO)
        self.assert_fails_cleanly(outcome)
        self.assertIn("being pulled", outcome.err)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    def test_names_are_strict(self):
        for name in ("Qwen", "../x", "a/../b", "a/b/c", "a/b@../x", "a/b:../x", "a--b/c", "-a/b", "a/b@", "a/b:", "a/b c", "/a/b", "a/."):
            with self.subTest(name):
                self.assertEqual(self.pull("--", name).code, 2)
                self.assertEqual(self.qwench("models", "rm", "--yes", "--", name).code, 2)
        self.assertEqual(self.hub.requests, [])


class Terminal(PullCase):
    """What a person sees: the program's streams are a terminal."""

    def talk(self, *arguments, answer=""):
        master, slave = pty.openpty()
        process = subprocess.Popen([BINARY, *arguments], env={**os.environ, **self.env}, stdin=slave, stdout=subprocess.PIPE,
                                   stderr=slave, text=True)
        os.close(slave)
        os.write(master, answer.encode())
        seen = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(master, 4096):
                seen += piece
        os.close(master)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out, seen.decode()

    def test_a_progress_line_with_speed_and_time_left(self):
        self.hub.on(f"content {WEIGHTS}", {"pause": 0.2})
        code, _, seen = self.talk("pull", REPO)
        self.assertEqual(code, 0, seen)
        self.assertRegex(seen, r"\r\d+.* kB of 656.5 kB, \d+ %, .*kB/s, 0:0\d left")

    def test_a_model_that_is_not_there_is_offered(self):
        code, out, seen = self.talk("inspect", "--check", REPO, answer="y\n")
        self.assertEqual(code, 0, seen)
        self.assertIn("Pull it from", seen)
        self.assertIn("sound", out)

    def test_no_is_an_answer(self):
        code, out, seen = self.talk("inspect", "--check", REPO, answer="\n")
        self.assertEqual((code, out), (1, ""), seen)
        self.assertIn("qwench pull", seen)
        self.assertEqual(self.hub.requests, [])

    def test_rm_asks(self):
        self.pull()
        code, _, seen = self.talk("models", "rm", REPO, answer="n\n")
        self.assertEqual(code, 1, seen)
        self.assertIn(f"Delete {REPO} (656.6 kB)?", seen)
        self.assertTrue(os.path.exists(self.repo_folder()))
        self.assertEqual(self.talk("models", "rm", REPO, answer="y\n")[0], 0)
        self.assertFalse(os.path.exists(self.repo_folder()))


@unittest.skipUnless(importlib.util.find_spec("huggingface_hub"), "Python's huggingface_hub is not installed")
class WithPython(PullCase):
    """The package whose cache this is reads what we wrote, and we read what it wrote."""

    def python(self, code):
        done = subprocess.run([sys.executable, "-c", "from huggingface_hub import *\n" + code], capture_output=True, text=True,
                              env={**os.environ, **{k: v for k, v in self.env.items() if v}}, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.rstrip("\n")

    def test_it_reads_what_we_wrote(self):
        snapshot = self.assert_pulled(self.pull())
        self.pull(f"{REPO}@v1")
        self.assertEqual(self.python(f"print(snapshot_download({REPO!r}, local_files_only=True, allow_patterns=['*.json', '*.safetensors']))"),
                         snapshot)
        self.assertEqual(self.python(f"print(hf_hub_download({REPO!r}, 'config.json', revision='v1', local_files_only=True))"),
                         os.path.join(snapshot, "config.json"))
        scan = json.loads(self.python(
            "import json; scan = scan_cache_dir(); repo, = scan.repos; revision, = repo.revisions\n"
            "print(json.dumps([len(scan.warnings), repo.repo_id, repo.size_on_disk, revision.commit_hash, sorted(revision.refs),"
            " sorted(f.file_name for f in revision.files)]))"))
        size = sum(len(self.hub.repos[REPO][name]) for name in NEEDED)
        self.assertEqual(scan, [0, REPO, size, COMMIT, ["main", "v1"], sorted(NEEDED)])

    def test_we_read_what_it_wrote(self):
        snapshot = self.python(f"print(snapshot_download({REPO!r}, allow_patterns={sorted(NEEDED)}))")
        self.assertEqual(self.qwench("score", REPO, "--jsonl").code, 0)
        self.hub.requests.clear()
        self.assertEqual(self.assert_pulled(self.pull()), snapshot)
        self.assertEqual(self.hub.content_requests(WEIGHTS), [])
        self.assertEqual(self.qwench("models", "rm", "--yes", REPO).code, 0)


if __name__ == "__main__":
    unittest.main()
