"""qwench serve against clients that are slow, rude or gone, and its end."""
import json
import os
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from serve_case import Server, ServeTestCase, events_of, post_bytes
from support import SANITIZED

LONG = {"prompt": "Once upon a time", "max_tokens": 1500, "ignore_eos": True, "stream": True}


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def head_of(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(4096)
    return data


class Hostile(ServeTestCase):
    ARGUMENTS = ("-c", "2048", "--max-batch", "8", "--max-queue", "2", "--max-body-mb", "1")

    def health_ms(self):
        begin = time.monotonic()
        self.assertEqual(self.server.get("/health")[0], 200)
        return (time.monotonic() - begin) * 1e3

    def test_malformed_requests_get_their_status(self):
        cases = [
            (b"nonsense\r\n\r\n", 400),
            (b"GET /health HTTP/1.1\r\n\r\n", 400),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 431),
            (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
            (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9999999\r\n\r\n", 413),
            (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
            (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 415),
            (b"POST /api/show HTTP/1.1\r\nHost: x\r\nOrigin: https://example.org\r\nContent-Length: 2\r\n\r\n{}", 415),
            (b"POST /api/show HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{x", 400),
            (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415),
            (b"PUT /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405),
            (b"GET /v1/completions HTTP/1.1\r\nHost: x\r\n\r\n", 405),
            (b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404),
            (b"GET http://x/health HTTP/9.9\r\nHost: x\r\n\r\n", 505),
            (b"GET /health HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n", 417),
        ]
        for data, status in cases:
            answer = self.server.raw(data, timeout=2)
            self.assertEqual(status_of(answer), status, (data[:80], answer[:300]))
            body = answer.split(b"\r\n\r\n", 1)[1]
            self.assertTrue(b"/api/" in data or "message" in json.loads(body)["error"], answer)
        self.health_ms()

    def test_a_chunked_body_in_single_bytes_is_read(self):
        body = json.dumps({"prompt": "Hi", "max_tokens": 1}).encode()
        data = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        data += b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        with self.server.socket() as connection:
            for at in range(0, len(data), 3):
                connection.sendall(data[at:at + 3])
            answer = b""
            while part := connection.recv(65536):
                answer += part
        self.assertEqual(status_of(answer), 200, answer)

    def test_continue_is_said_before_a_body(self):
        with self.server.socket() as connection:
            head, body = post_bytes("/tokenize", {"prompt": "Hi"}, "Expect: 100-continue\r\n").split(b"\r\n\r\n")
            connection.sendall(head + b"\r\n\r\n")
            self.assertTrue(head_of(connection).startswith(b"HTTP/1.1 100 "))
            connection.sendall(body)
            self.assertEqual(status_of(head_of(connection)), 200)

    def test_pipelined_requests_are_answered_in_order(self):
        data = b"GET /health HTTP/1.1\r\nHost: x\r\nx-request-id: r0\r\n\r\n"
        data += post_bytes("/v1/completions", {"prompt": "Hi", "max_tokens": 2}, "x-request-id: r1\r\n")
        data += post_bytes("/v1/completions", {"prompt": "Hi", "max_tokens": 2, "stream": True}, "x-request-id: r2\r\n")
        data += post_bytes("/tokenize", {"prompt": "Hi"}, "x-request-id: r3\r\n")
        data += b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-request-id: r4\r\n\r\n"
        answer = self.server.raw(data)
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 5, answer)
        places = [answer.index(b"x-request-id: r%d" % i) for i in range(5)]
        self.assertEqual(places, sorted(places))

    def test_http_1_0_gets_an_answer_that_ends_with_the_connection(self):
        body = json.dumps({"prompt": "Hi", "max_tokens": 2, "stream": True}).encode()
        answer = self.server.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head, rest = answer.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head.lower())
        self.assertGreaterEqual(len(events_of(rest)), 2)

    def leave(self, reset):
        connection = self.server.socket()
        connection.sendall(post_bytes("/v1/completions", LONG))
        head_of(connection)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()

    def test_a_client_that_leaves_ends_its_request(self):
        self.server.wait_until_still()  # other tests' requests end with events too
        for reset in (False, True):
            ended = len(self.server.events("generation"))
            self.leave(reset)
            event = self.server.wait_for_event("generation", count=ended + 1)
            self.assertEqual(event["finish_reasons"], ["abort"])
            self.assertGreater(event["prompt_tokens"], 0)
            self.assertNotIn("cached_tokens", event)  # known of whole answers only
            self.server.wait_until_still()
        body = {**LONG, "stream": False}
        ended = len(self.server.events("generation"))
        connection = self.server.socket()
        connection.sendall(post_bytes("/v1/completions", body))
        time.sleep(0.3)
        connection.close()
        self.assertEqual(self.server.wait_for_event("generation", count=ended + 1)["finish_reasons"], ["abort"])
        self.server.wait_until_still()

    def test_leaving_in_the_queue_and_while_prefilling_frees_the_place(self):
        prompt = "The quick brown fox jumps over the lazy dog. " * 150
        connections = []
        for i in range(9):
            connection = self.server.socket()
            connection.sendall(post_bytes("/v1/completions", {**LONG, "prompt": f"{i} {prompt}"}))
            connections.append(connection)
        time.sleep(0.2)
        for connection in connections:
            connection.close()
        self.server.wait_until_still()

    def test_a_full_queue_says_429_and_when_to_come_again(self):
        self.server.wait_until_still()
        connections = []
        statuses = []
        for _ in range(14):
            connection = self.server.socket()
            connection.sendall(post_bytes("/v1/completions", LONG))
            connections.append(connection)
            head = head_of(connection)
            statuses.append(status_of(head))
            if statuses[-1] == 429:
                self.assertIn(b"Retry-After: ", head)
        for connection in connections:
            connection.close()
        self.assertEqual(statuses.count(200), 10, statuses)  # 8 run, 2 wait
        self.assertEqual(statuses.count(429), 4, statuses)
        self.server.wait_until_still()
        self.assert_error(self.server.post("/v1/completions", {"prompt": "x", "n": 100}), 400, "n")

    def test_slow_and_idle_connections_hold_up_no_other(self):
        """A short soak: idle and trickling connections, streams, and clients that vanish."""
        idle = [self.server.socket() for _ in range(150)]
        slow = [self.server.socket() for _ in range(40)]
        request = post_bytes("/v1/completions", {"prompt": "Hi" * 10000, "max_tokens": 1})
        at = request.index(b"\r\n\r\n") + 4
        for connection in slow:
            connection.sendall(request[:at])
        errors = []

        def stream(seed):
            for round_ in range(3):
                try:
                    if (seed + round_) % 3 == 0:
                        self.leave(reset=round_ % 2 == 0)
                        continue
                    status, _, body = self.server.post("/v1/completions", {**LONG, "max_tokens": 30, "seed": seed})
                    if status == 200:
                        events_of(body)
                    elif status != 429:
                        errors.append((status, body))
                except Exception as error:  # noqa: BLE001: shown by the assertion below
                    errors.append(repr(error))
        threads = [threading.Thread(target=stream, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        worst = 0
        while any(thread.is_alive() for thread in threads):
            for connection in slow:
                connection.sendall(request[at:at + 1])
            at += 1
            worst = max(worst, self.health_ms())
            time.sleep(0.05)
        self.assertEqual(errors, [])
        self.assertGreaterEqual(self.server.metric("qwench:http_connections"), 190)
        for connection in idle + slow:
            connection.close()
        self.server.wait_until_still()
        print(f"soak: /health took at most {worst:.1f} ms")
        if not SANITIZED:
            self.assertLess(worst, 1000)


class Limits(ServeTestCase):
    ARGUMENTS = ("-c", "2048", "--max-connections", "20", "--request-timeout", "1")

    def test_connections_beyond_the_most_hear_why(self):
        connections = [self.server.socket() for _ in range(20)]
        time.sleep(0.2)
        answer = self.server.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", timeout=3)
        self.assertEqual(status_of(answer), 503, answer)
        for connection in connections:
            connection.close()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if status_of(self.server.raw(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")) == 200:
                return
        self.fail("no connection came free")

    def test_an_answer_that_takes_too_long_is_an_error(self):
        self.assert_error(self.server.post("/v1/completions", {**LONG, "stream": False}), 504)
        _, _, body = self.server.post("/v1/completions", LONG)
        events = events_of(body)
        self.assertEqual(events[-1]["error"]["type"], "timeout_error")


class End(ServeTestCase):
    ARGUMENTS = None

    def begin_stream(self, server, tokens):
        connection = server.socket(timeout=60)
        connection.sendall(post_bytes("/v1/completions", {**LONG, "max_tokens": tokens}, "Connection: close\r\n"))
        head_of(connection)
        return connection

    def test_sigterm_finishes_what_runs(self):
        with Server("-c", 2048) as server:
            connection = self.begin_stream(server, 150)
            idle = server.socket()
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_event("draining")
            status, _, body = server.get("/health")
            self.assertEqual((status, body), (503, {"status": "draining"}))
            self.assert_error(server.post("/v1/completions", {"prompt": "Hi"}), 503)
            rest = b""
            while part := connection.recv(65536):
                rest += part
            self.assertIn(b"data: [DONE]", rest)
            self.assertEqual(server.process.wait(30), 0)
            self.assertTrue(server.wait_for_event("ended")["all_answered"])
            self.assertEqual(idle.recv(1), b"")

    def test_after_the_drain_timeout_what_runs_is_cut(self):
        with Server("-c", 2048, "--drain-timeout", 1) as server, self.begin_stream(server, 1900):
            begin = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - begin, 20)
            self.assertFalse(server.wait_for_event("ended")["all_answered"])

    def test_a_second_signal_ends_at_once(self):
        with Server("-c", 2048) as server, self.begin_stream(server, 1900):
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_event("draining")
            time.sleep(0.5)  # what comes at the same moment counts as the first one
            self.assertEqual(server.stop(), 128 + signal.SIGTERM)

    def test_a_signal_that_comes_twice_at_once_is_one(self):
        with Server("-c", 2048) as server:
            connection = self.begin_stream(server, 100)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_event("draining")
            server.process.send_signal(signal.SIGTERM)  # as timeout does to the group of processes
            rest = b""
            while part := connection.recv(65536):
                rest += part
            self.assertIn(b"data: [DONE]", rest)
            self.assertEqual(server.process.wait(30), 0)


class Tls(ServeTestCase):
    ARGUMENTS = None

    def test_https(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                            "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
            with Server("-c", 512, "--ssl-cert", cert, "--ssl-key", key) as server:
                self.assertTrue(server.url.startswith("https://"))
                context = ssl.create_default_context(cafile=cert)
                with context.wrap_socket(server.socket(), server_hostname="localhost") as connection:
                    connection.sendall(post_bytes("/v1/completions", {**LONG, "max_tokens": 5}, "Connection: close\r\n"))
                    answer = b""
                    while part := connection.recv(65536):
                        answer += part
                self.assertIn(b"data: [DONE]", answer)
                # A client that speaks no TLS disturbs nobody.
                server.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", timeout=3)
                with context.wrap_socket(server.socket(), server_hostname="localhost") as connection:
                    connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                    self.assertEqual(status_of(head_of(connection)), 200)
