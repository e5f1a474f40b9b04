#!/usr/bin/env python3
"""Check what no compiler checks: a layer includes only layers above it, and no file has grown too long.

The order of the layers is the order of qwench_layer(...) in CMakeLists.txt, with cli last; include/qwench, the public
interface, may be included by all and includes only itself.
"""
import re
import subprocess
import sys

LONGEST = 600  # lines
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def layers():
    with open("CMakeLists.txt", encoding="utf-8") as f:
        return re.findall(r"^qwench_layer\((\w+)", f.read(), re.MULTILINE) + ["cli"]


def complaints_about(path, text, order):
    if text.count("\n") > LONGEST and path.endswith((".cpp", ".h", ".py", ".sh")):
        yield f"{path}: {text.count(chr(10))} lines, at most {LONGEST}: split it along an idea"
    if path.startswith("include/"):
        allowed = []
    elif path.startswith("src/"):
        own = path.split("/")[1]
        if own not in order:
            yield f"{path}: src/{own} is no layer; CMakeLists.txt knows {', '.join(order)}"
            return
        allowed = order[:order.index(own) + 1]
    else:
        return
    for name in INCLUDE.findall(text):
        first = name.split("/")[0]
        if "/" in name and first != "qwench" and first in order and first not in allowed:
            yield f"{path}: includes {name}, which is not above it ({' -> '.join(order)})"


def main():
    order = layers()
    listed = subprocess.run(["git", "ls-files", "-z", "--", "*.cpp", "*.h", "*.py", "*.sh"], check=True,
                            capture_output=True, text=True).stdout.split("\0")
    count, found = 0, []
    for path in filter(None, listed):
        try:
            with open(path, encoding="utf-8") as f:
                found += complaints_about(path, f.read(), order)
        except FileNotFoundError:
            continue  # removed, and not committed yet
        count += 1
    for line in found:
        print(line, file=sys.stderr)
    print(f"{count} files looked at")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
