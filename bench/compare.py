#!/usr/bin/env python3
"""Measure this engine and others on the same weights and threads, in turns, and write docs/performance.md.

Each round starts each engine once, one after the other, so that what else the machine does meets all of them; the table has the
medians of the rounds. The others come from the Python package registry into a virtual environment; one that cannot be had, or
does not read the model, is named with the reason.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
sys.path.insert(0, PEERS)
from worker import Case  # noqa: E402

BEGIN, END = "<!-- measured by ./dev bench compare -->", "<!-- end -->"


class Peer:
    """Another engine: the packages it comes in, the script that measures it, and which models it reads."""

    def __init__(self, name, packages, script, reads):
        self.name, self.packages, self.script, self.reads = name, packages, script, reads


def reads_gguf(*types):
    def reason(model, kind):
        if not model.endswith(".gguf"):
            return "reads GGUF files only"
        return "" if not types or kind in types else f"does not read GGUF files of {kind}"
    return reason


def reads_folders(model, _kind):
    return "" if os.path.isdir(model) else "reads checkpoint folders only"


ALL_PEERS = [
    Peer("llama.cpp", ["llama-cpp-python", "numpy"], "measure_llama.py", reads_gguf()),
    Peer("OpenVINO GenAI", ["openvino-genai"], "measure_openvino.py", reads_gguf("f16", "q8_0", "q4_0")),
    Peer("transformers", ["torch", "transformers"], "measure_transformers.py", reads_folders),
]


def note(text):
    print(f"bench compare: {text}", file=sys.stderr, flush=True)


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


def install(peer, venv, offline):
    """The reason why it is not there, or an empty string."""
    python = os.path.join(venv, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    probe = f"import importlib.metadata as m; [m.version(p) for p in {peer.packages!r}]"
    if subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0:
        return ""
    if offline:
        return "is not installed (--offline)"
    note(f"installing {', '.join(peer.packages)} (llama.cpp is compiled: minutes)")
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *peer.packages], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"cannot be installed: {last_line(done.stderr)}"


def run_peer(peer, venv, model, threads, cases):
    command = [os.path.join(venv, "bin", "python"), os.path.join(PEERS, peer.script), model, "--threads", str(threads)]
    for case in cases:
        command += ["--case", str(case)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"engine"')]
    reason = "" if done.returncode == 0 else last_line(done.stderr)
    return {line["case"]: line["tokens_per_second"] for line in lines}, (lines[0]["engine"] if lines else peer.name), reason


def run_own(program, model, threads, options):
    command = [program, "bench", model, "-t", str(threads), "-p", str(options.prompt), "-n", str(options.generate),
               "-b", options.batch, "-d", options.depth, "-r", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench compare: {last_line(done.stderr)}")
    return json.loads(done.stdout)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def median(values):
    return statistics.median(values) if values else None


def number(value):
    return "-" if value is None else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def table_of(model, own, peers, cases):
    """own: reports, one a round. peers: {name: ({case: [tok/s]}, reason)}"""
    tests = {case.name: [t for report in own for t in report["tests"] if t["test"] == case.name] for case in cases}
    names = list(peers)
    lines = ["| test | qwench, tok/s | of read | of f32 | of int8 | " + "".join(f"{name} | ratio | " for name in names).rstrip(),
             "|---|---|---|---|---|" + "---|---|" * len(names)]
    for case in cases:
        found = tests[case.name]
        if not found:
            continue
        rate = median([t["tokens_per_second"] for t in found])
        shares = [median([t[key] for t in found if t[key] is not None]) for key in ("share_of_read", "share_of_f32", "share_of_int8")]
        row = [case.name, number(rate)] + ["-" if s is None else f"{100 * s:.0f} %" for s in shares]
        for name in names:
            theirs = median(peers[name][0].get(case.name, []))
            row += [number(theirs), "-" if theirs is None else f"{rate / theirs:.2f}x"]
        lines.append("| " + " | ".join(row) + " |")
    first = own[0]
    text = (f"### {model}\n\n{first['weight_type']} weights, {first['weight_bytes'] / 1e6:.0f} MB read per token, {first['cell_type']} "
            f"cache; peak memory {median([r['peak_memory'] for r in own]) / 1e6:.0f} MB\n\n" + "\n".join(lines) + "\n")
    for name in names:
        if peers[name][1]:
            text += f"\n{name}: {peers[name][1]}.\n"
    return text


def machine_of(reports, threads):
    limits = [report["limits"] for report in reports]
    best = {key: max((l[key] for l in limits if l[key] is not None), default=None) for key in limits[0]}
    int8 = f", {best['int8_gop_per_s']:.0f} GOP/s int8 dot products" if best["int8_gop_per_s"] else ""
    with open("/proc/meminfo", encoding="utf-8") as info:
        memory = int(info.readline().split()[1]) / 1e6
    return (f"{processor()}, {reports[0]['device']}, {threads} of {os.cpu_count()} cores, {memory:.0f} GB of memory. Limits measured in "
            f"the same runs: {best['read_gb_per_s']:.1f} GB/s read, {best['f32_gflop_per_s']:.0f} GFLOP/s f32{int8}.")


def write(path, text):
    head, tail = "# Performance\n\n", ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as page:
            old = page.read()
        if BEGIN in old and END in old:
            head, tail = old[:old.index(BEGIN)], old[old.index(END) + len(END):].lstrip("\n")
    with open(path, "w", encoding="utf-8") as page:
        page.write(f"{head}{BEGIN}\n\n{text}\n{END}\n" + (f"\n{tail}" if tail else ""))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("model", nargs="+", help="GGUF files or checkpoint folders")
    parser.add_argument("--batch", default="1,8,50", help="sequences that decode at once")
    parser.add_argument("--depth", default="0", help="positions in the cache before a test")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", default=",".join(p.name for p in ALL_PEERS), help="which ones, by name")
    parser.add_argument("--venv", default="build/peers/venv", help="where they are installed")
    parser.add_argument("--offline", action="store_true", help="install nothing")
    parser.add_argument("--output", default="docs/performance.md", help="- prints only")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.peers.split(",") if name.strip()]
    unknown = set(wanted) - {peer.name for peer in ALL_PEERS}
    if unknown:
        parser.error(f"unknown peers: {', '.join(sorted(unknown))}; known: {', '.join(p.name for p in ALL_PEERS)}")
    batches = [int(b) for b in options.batch.split(",")]
    depths = [int(d) for d in options.depth.split(",")]

    reasons = {peer.name: install(peer, options.venv, options.offline) for peer in ALL_PEERS if peer.name in wanted}
    tables, reports, versions = [], [], {}
    for model in options.model:
        own, peers = [], {}
        for turn in range(options.rounds):
            note(f"{os.path.basename(model)}, round {turn + 1} of {options.rounds}")
            own.append(run_own(options.program, model, options.threads, options))
            cases = [Case("prefill" if t["rows"] > 1 else "decode", t["rows"] if t["rows"] > 1 else t["steps"], t["sequences"],
                          t["depth"]) for t in own[0]["tests"]]
            for peer in ALL_PEERS:
                if peer.name not in wanted:
                    continue
                rates, reason = peers.setdefault(peer.name, ({}, reasons[peer.name] or peer.reads(model, own[0]["weight_type"])))
                if reason:
                    continue
                found, versions[peer.name], failure = run_peer(peer, options.venv, model, options.threads, cases)
                for case, rate in found.items():
                    rates.setdefault(case, []).append(rate)
                peers[peer.name] = (rates, failure and f"failed: {failure}")
        reports += own
        shown = {name: result for name, result in peers.items() if result[0] or not result[1].startswith("reads ")}
        tables.append(table_of(os.path.basename(os.path.normpath(model)), own, shown, cases))
    text = machine_of(reports, options.threads) + "\n\n"
    text += (f"Medians of {options.rounds} rounds in turns. " + "; ".join(versions.values()) + ".\n\n") if versions else ""
    text += "\n".join(tables)
    print(text)
    if options.output != "-":
        write(options.output, text)
        note(f"wrote {options.output}")


if __name__ == "__main__":
    main()
