#!/usr/bin/env python3
"""Loads a qwench server as a busy day would: many connections that are idle, some that send a byte a second, clients that
stream answers, some of which vanish at random, also while their prompt is computed. Says what the streams got, how long
/health took throughout, and how the server's memory moved; exits with 1 where something was not as it must be.

    serve_load.py [--binary QWENCH] [--model MODEL] [--seconds N] [--idle N] [--slow N] [--streams N] [--vanish SHARE]
"""
import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time


class Figures:
    def __init__(self):
        self.health = []  # milliseconds
        self.finished = self.vanished = self.refused = self.tokens = 0
        self.first = []  # seconds to the first token
        self.errors = []
        self.memory = []  # bytes


def request(body):
    text = json.dumps(body).encode()
    return (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(text)) + text


async def get(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, body = answer.split(b"\r\n\r\n", 1)
    return int(head.split(b" ")[1]), body


async def idle(port, end):
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.wait_for(reader.read(1), end - time.monotonic())
        except (asyncio.TimeoutError, ConnectionError):
            pass
        writer.close()


async def slow(port, end):
    """Half of them trickle headers, half a body; the server ends them when it has waited long enough."""
    data = request({"prompt": "x" * 10000, "max_tokens": 1})
    if random.random() < 0.5:
        sent = data.index(b"\r\n\r\n") + 4
    else:
        sent = 0
    while time.monotonic() < end:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        at = sent
        writer.write(data[:at])
        try:
            while time.monotonic() < end and not reader.at_eof():
                writer.write(data[at:at + 1])
                await writer.drain()
                at += 1
                await asyncio.sleep(1)
        except ConnectionError:
            pass
        writer.close()


async def stream(port, end, figures, options):
    while time.monotonic() < end:
        prompt = " ".join(random.choice(("river", "stone", "light", "bird", "of", "the", "and")) for _ in range(random.randint(5, 400)))
        tokens = random.randint(5, options.tokens)
        vanish = random.random() < options.vanish
        begin = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request({"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True,
                                  "stream_options": {"include_usage": True}}))
            if vanish and random.random() < 0.5:  # in the queue, or while the prompt is computed
                await asyncio.sleep(random.random() * 0.3)
                figures.vanished += 1
                continue
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ")[1])
            if status == 429:
                figures.refused += 1
                await asyncio.sleep(1)
                continue
            if status != 200:
                figures.errors.append(head + await reader.read())
                continue
            body, first = b"", None
            while part := await reader.read(65536):
                body += part
                if first is None and b'"text"' in body:
                    first = time.monotonic() - begin
                    if vanish:
                        break
            if vanish:
                figures.vanished += 1
                continue
            figures.first.append(first or 0)
            if b"data: [DONE]" not in body or b'"completion_tokens":%d' % tokens not in body:
                figures.errors.append(body[-500:])
            else:
                figures.finished += 1
                figures.tokens += tokens
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            figures.errors.append(repr(error).encode())
        finally:
            writer.close()


def ask_health(port, seconds, results):
    """Milliseconds that /health takes, and statuses other than 200: in a process of its own, as the one that is a thousand clients
    is late itself."""
    took, others = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", "/health")
            status = connection.getresponse().status
        except OSError:
            status = 0
        finally:
            connection.close()
        took.append((time.monotonic() - begin) * 1e3)
        if status != 200:
            others.append(status)
        time.sleep(0.05)
    results.put((took, others))


async def watch(end, figures, pid):
    while time.monotonic() < end:
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            figures.memory.append(int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
        await asyncio.sleep(0.1)


async def metrics(port, names):
    _, text = await get(port, "/metrics")
    found = {}
    for line in text.decode().splitlines():
        name = line.split("{")[0].split(" ")[0]
        if name in names:
            found[name] = float(line.rsplit(" ", 1)[1])
    return found


async def load(port, pid, options, figures):
    end = time.monotonic() + options.seconds
    tasks = [idle(port, end) for _ in range(options.idle)] + [slow(port, end) for _ in range(options.slow)]
    tasks += [stream(port, end, figures, options) for _ in range(options.streams)]
    running = [asyncio.create_task(task) for task in tasks]
    await watch(end, figures, pid)
    done, late = await asyncio.wait(running, timeout=300)
    for task in done:
        if task.exception():
            figures.errors.append(repr(task.exception()).encode())
    if late:
        figures.errors.append(b"%d clients did not end" % len(late))
    names = ("qwench:num_requests_running", "qwench:num_requests_waiting", "qwench:kv_cache_usage_perc")
    for _ in range(100):
        left = await metrics(port, names)
        if not any(left.values()):
            break
        await asyncio.sleep(0.1)
    if any(left.values()):
        figures.errors.append(f"not all came back: {left}".encode())


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def start(options, log):
    process = subprocess.Popen([options.binary, "serve", options.model, "--port", "0", *options.serve], stdout=subprocess.DEVNULL, stderr=log)
    while True:
        lines = os.pread(log.fileno(), 1 << 20, 0).decode("utf-8", "replace").splitlines()
        events = {event["event"]: event for event in map(json.loads, (line for line in lines if line.startswith("{")))}
        if "ready" in events:
            return process, int(events["listening"]["urls"][0].rsplit(":", 1)[1])
        if process.poll() is not None:
            sys.exit("\n".join(lines))
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default="build/release/bin/qwench")
    parser.add_argument("--model", default=os.path.join(os.environ.get("QWENCH_CACHE") or os.path.expanduser("~/.cache/qwench"),
                                                        "models", "smollm2-135m-instruct-q4_1.gguf"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--idle", type=int, default=500)
    parser.add_argument("--slow", type=int, default=100)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=60, help="the most tokens of an answer")
    parser.add_argument("--vanish", type=float, default=0.2, help="the share of streams whose client leaves")
    parser.add_argument("--health-ms", type=float, default=50, help="the most that 99 of 100 /health may take")
    # A cache's memory becomes resident as its blocks are first used: one that is soon full, or growth could be a leak.
    parser.add_argument("serve", nargs="*", default=["--kv-cache-memory", "600MB"],
                        help="options of qwench serve, behind -- (default: --kv-cache-memory 600MB)")
    options = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryFile() as log:
        process, port = start(options, log)
        results = multiprocessing.Queue()
        asker = multiprocessing.Process(target=ask_health, args=(port, options.seconds, results), daemon=True)
        asker.start()
        asyncio.run(load(port, process.pid, options, figures))
        figures.health, others = results.get(timeout=120)
        asker.join()
        figures.errors += [b"/health said %d" % status for status in others]
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    if code != 0:
        figures.errors.append(b"the server's exit code is %d" % code)
    third = max(1, len(figures.memory) // 3)
    early, late = max(figures.memory[third:2 * third] or [0]), max(figures.memory[-third:])
    print(f"{options.idle} idle, {options.slow} slow, {options.streams} streaming, {options.seconds:.0f} s")
    print(f"streams: {figures.finished} whole, {figures.vanished} left by their client, {figures.refused} refused (429), "
          f"{figures.tokens / options.seconds:.0f} tok/s, first token after {percentile(figures.first, 0.5):.2f} s (median), "
          f"{percentile(figures.first, 0.99):.2f} s (99 %)")
    print(f"/health: {len(figures.health)} times, {percentile(figures.health, 0.5):.1f} ms (median), "
          f"{percentile(figures.health, 0.99):.1f} ms (99 %), {max(figures.health):.1f} ms at most")
    print(f"memory: {early / 1e6:.0f} MB in the second third, {late / 1e6:.0f} MB in the last")
    if percentile(figures.health, 0.99) > options.health_ms:
        figures.errors.append(b"/health took too long")
    for error in figures.errors[:10]:
        print("ERROR:", error.decode("utf-8", "replace")[:600])
    print(f"errors: {len(figures.errors)}")
    return 1 if figures.errors else 0


if __name__ == "__main__":
    sys.exit(main())
