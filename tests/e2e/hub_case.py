"""What the tests of `qwench pull` and `qwench models` share: small models on a hub on this machine (fake_hub.py)."""
import contextlib
import os
import subprocess
import tempfile
import time

from fake_hub import FakeHub, etag
from support import BINARY, DATA, TestCase, qwench

TINY = os.path.join(DATA, "models", "llama-tiny")
SHARDED = os.path.join(DATA, "models", "qwen3-tiny-sharded-bf16")
REPO = "Test/Llama-Tiny"
WEIGHTS = "model.safetensors"


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def tiny():
    files = {name: read(TINY, name) for name in ("config.json", "generation_config.json", WEIGHTS)}
    return {**files, "README.md": b"# Read me\n", "pytorch_model.bin": b"not this", "onnx/model.onnx": b"nor this",
            ".gitattributes": b"*"}


NEEDED = {"config.json", "generation_config.json", WEIGHTS}
GGUF = read(DATA, "malformed", "gguf", "ok.gguf")


class PullCase(TestCase):
    def setUp(self):
        with contextlib.ExitStack() as stack:
            self.hub = stack.enter_context(FakeHub({REPO: tiny()}))
            self.folder = stack.enter_context(tempfile.TemporaryDirectory())
            self.addCleanup(stack.pop_all().close)
        self.cache = os.path.join(self.folder, "hub")
        self.env = {name: "" for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "HF_HUB_CACHE",
                                          "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN")}
        self.env |= {"HF_HOME": self.folder, "HF_ENDPOINT": self.hub.url, "MODELSCOPE_ENDPOINT": self.hub.url,
                     "HF_HUB_DOWNLOAD_TIMEOUT": "10", "NO_PROXY": "*", "no_proxy": "*"}

    def qwench(self, *arguments, **env):
        return qwench(*arguments, env={**self.env, **env}, timeout=120)

    def pull(self, *arguments, **env):
        return self.qwench("pull", *(arguments or (REPO,)), **env)

    def assert_pulled(self, outcome, repo=REPO, files=NEEDED):
        self.assertEqual(outcome.code, 0, outcome)
        path = outcome.out.rstrip("\n")
        snapshot = path[:path.index("/snapshots/") + len("/snapshots/") + 40]
        found = {os.path.relpath(os.path.join(base, name), snapshot) for base, _, names in os.walk(snapshot) for name in names}
        self.assertEqual(found, set(files))
        for name in files:
            self.assertEqual(read(snapshot, name), self.hub.repos[repo][name], name)
        self.assertEqual(self.unfinished(), [])
        return snapshot

    def assert_refused(self, outcome, *words):
        """An error that ends in one sentence (others before it may tell of further tries), and nothing half done."""
        self.assertEqual(outcome.code, 1, outcome)
        self.assertEqual(outcome.out, "", outcome)
        for word in words:
            self.assertIn(word, outcome.err.splitlines()[-1], outcome)
        self.assertFalse(os.path.exists(os.path.join(self.repo_folder(), "refs")), "a broken pull must not count as pulled")

    def repo_folder(self, repo=REPO):
        return os.path.join(self.cache, "models--" + repo.replace("/", "--"))

    def unfinished(self):
        return [name for _, _, names in os.walk(self.cache) for name in names if name.endswith(".incomplete")]

    def assert_nothing_unfinished_of(self, name, repo=REPO):
        """The other files' transfers may have been broken off by this one's failure; a later pull resumes them."""
        self.assertNotIn(etag(name, self.hub.repos[repo][name]) + ".incomplete", self.unfinished())

    def start(self, *arguments):
        return subprocess.Popen([BINARY, *arguments], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_until(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "did not happen in time")
            time.sleep(0.01)
