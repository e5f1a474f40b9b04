#!/usr/bin/env python3
"""Run clang-tidy on the named sources, or on all that the build folder compiles; where it compiles several together
(QWENCH_UNITY), so does clang-tidy. What was clean is not looked at again until it, a header of the project that it
includes, .clang-tidy or the tool changes: clean units are noted by content in the user's cache.

    tidy.py BUILD_FOLDER [FILE...]
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import platform
import re
import subprocess
import sys

from fetch_models import cache_folder

TOOL = "clang-tidy-14"
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Warnings are GCC's business in the build; here only clang-tidy's own checks count, so that the two never disagree.
# The kernels are read for one instruction set, not once for each.
ARGUMENTS = ["--quiet", "--extra-arg=-Wno-everything", "--extra-arg=-DHWY_COMPILE_ONLY_STATIC"]
if platform.machine() == "x86_64":
    ARGUMENTS += ["--extra-arg=-march=haswell", "--extra-arg=-maes"]


@functools.lru_cache(maxsize=None)
def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return None


def closure(path):
    """The file and all headers of the project that it includes."""
    seen, queue = set(), [path]
    while queue:
        current = queue.pop()
        content = read(current)
        if current in seen or content is None:
            continue
        seen.add(current)
        for name in INCLUDE.findall(content):
            name = name.decode()
            queue += [os.path.normpath(os.path.join(root, name))
                      for root in ("src", "include", os.path.dirname(current))]
    return sorted(seen)


def key_of(path, version):
    total = hashlib.sha256(version + " ".join(ARGUMENTS).encode() + read(".clang-tidy"))
    for name in closure(path):
        # Where the checkout lies does not matter.
        content = read(name).replace(os.getcwd().encode(), b"")
        total.update(os.path.relpath(name).encode() + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def compiled(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        files = {os.path.relpath(entry["file"]) for entry in json.load(f)}
    return sorted(filter(os.path.exists, files))  # what the build generates is not there


def tidy(build, path):
    done = subprocess.run([TOOL, *ARGUMENTS, "-p", build, path], capture_output=True, text=True, check=False)
    return path, done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def main():
    build, files = sys.argv[1], sys.argv[2:] or compiled(sys.argv[1])
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    folder = os.path.join(cache_folder(), "lint")
    os.makedirs(folder, exist_ok=True)
    keys = {path: os.path.join(folder, key_of(path, version)) for path in files}
    due = [path for path in files if not os.path.exists(keys[path])]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, clean, output in pool.map(functools.partial(tidy, build), due):
            if clean:
                open(keys[path], "w", encoding="utf-8").close()
            else:
                failed += 1
                print(output, flush=True)
    print(f"{len(files)} units: {len(due)} looked at, {len(files) - len(due)} known to be clean, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
