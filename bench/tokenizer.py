#!/usr/bin/env python3
"""Compare the tokenizer with Hugging Face `tokenizers`, side by side on one thread.

  tokenizer.py TOKENIZER_BENCH [--cache DIR] [--rounds N] [--turns N]

TOKENIZER_BENCH is the built program bench/tokenizer_bench. Needs `pip install tokenizers`. The two run in turn
(A B A B ...); each turn encodes every document ROUNDS times after loading, and the medians of all turns count.
Times are processor time, so that other programs on the machine do not
decide. The numbers of ids are compared too: a difference is an error.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "tokenizer")
DOCUMENTS = ("long_en", "long_zh", "long_code")


def default_cache():
    if os.environ.get("QWENCH_CACHE"):
        return os.environ["QWENCH_CACHE"]
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "qwench")


def ours(program, folder, files, rounds):
    lines = subprocess.run([program, "--measure", folder, str(rounds)] + files, check=True, capture_output=True, text=True).stdout.split("\n")
    out = {}
    for line in filter(None, lines):
        name, size, ids, _, median = line.split()
        out[name] = (float(median), ids)
    return out


def theirs(library, folder, files, rounds):
    begin = time.process_time()
    tokenizer = library.from_file(os.path.join(folder, "tokenizer.json"))
    out = {"load": (time.process_time() - begin, "-")}
    for path in files:
        with open(path, encoding="utf-8", newline="") as f:
            text = f.read()
        times = []
        for _ in range(rounds):
            begin = time.process_time()
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            times.append(time.process_time() - begin)
        out[os.path.splitext(os.path.basename(path))[0]] = (statistics.median(times), str(len(ids)))
    return out


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("program")
    options.add_argument("--cache", default=default_cache())
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--turns", type=int, default=3)
    options = options.parse_args()
    try:
        import tokenizers
    except ImportError:
        sys.exit("bench/tokenizer.py needs Hugging Face tokenizers: pip install tokenizers")
    files = [os.path.join(DATA, name + ".txt") for name in DOCUMENTS]
    print("qwench against tokenizers %s, one thread, medians of %d turns of %d rounds" % (tokenizers.__version__, options.turns, options.rounds))
    print("%-9s %-10s %10s %12s %12s %7s" % ("tokenizer", "document", "ids", "qwench MB/s", "theirs MB/s", "ratio"))
    different = False
    for name in ("qwen3", "qwen2.5", "smollm2"):
        folder = os.path.join(options.cache, "tokenizers", name)
        if not os.path.exists(os.path.join(folder, "tokenizer.json")):
            sys.exit("%s has no tokenizer.json; run ./dev fetch-models" % folder)
        a, b = [], []
        for _ in range(options.turns):
            a.append(ours(options.program, folder, files, options.rounds))
            b.append(theirs(tokenizers.Tokenizer, folder, files, options.rounds))
        for document in DOCUMENTS:
            size = os.path.getsize(os.path.join(DATA, document + ".txt")) / 1e6
            mine = statistics.median(t[document][0] for t in a)
            other = statistics.median(t[document][0] for t in b)
            different |= a[0][document][1] != b[0][document][1]
            print("%-9s %-10s %10s %12.1f %12.1f %6.1fx" % (name, document, a[0][document][1], size / mine, size / other, other / mine))
        mine, other = (statistics.median(t["load"][0] for t in x) for x in (a, b))
        print("%-9s %-10s %10s %9.0f ms %9.0f ms %6.1fx" % (name, "loading", "-", mine * 1e3, other * 1e3, other / mine))
    if different:
        sys.exit("the numbers of ids differ")


if __name__ == "__main__":
    main()
