"""What the tests of `qwench serve` share: a server in a process of its own, and plain ways to talk to it."""
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

from support import BINARY, SMOLLM2, TestCase, fetched


class Server:
    """qwench serve on a free port; its log is kept in a file."""

    def __init__(self, *arguments, model=None, env=None, wait="ready"):
        self.log_file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [BINARY, "serve", model or fetched(SMOLLM2), "--port", "0", *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=self.log_file, env={**os.environ, **(env or {})})
        self.url = self.wait_for_event("listening")["urls"][0]
        self.port = int(self.url.rsplit(":", 1)[1])
        if wait:
            self.wait_for_event(wait)

    def raw_log(self):
        return os.pread(self.log_file.fileno(), 1 << 26, 0).decode("utf-8", "replace")

    def events(self, name=None):
        events = [json.loads(line) for line in self.raw_log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for event in events if name in (None, event["event"])]

    def wait_for_event(self, name, timeout=120, count=1):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            events = self.events(name)
            if len(events) >= count:
                return events[-1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no event {name!r} (exit code {self.process.poll()}); the log:\n{self.raw_log()}")

    def request(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body): JSON where it is JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            sent = dict(headers or {})
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if body is not None:
                sent.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            text = response.read()
            kind = response.headers.get("Content-Type", "")
            return response.status, response.headers, json.loads(text) if kind.startswith("application/json") and text else text
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def raw(self, data, timeout=20, close_writing=False):
        """What comes back for these bytes until the server closes, or is silent for `timeout`."""
        with self.socket(timeout) as connection:
            connection.sendall(data)
            if close_writing:
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
            except (ConnectionResetError, socket.timeout):
                pass
            return answer

    def socket(self, timeout=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def metric(self, name):
        _, _, text = self.get("/metrics")
        found = [line for line in text.decode().splitlines() if line.startswith(name) and line[len(name)] in "{ "]
        if not found:
            raise AssertionError(f"no metric {name} in\n{text.decode()}")
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def wait_until_still(self, timeout=60):
        """Nothing runs or waits, and every block of the cache has come back."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            values = [self.metric(f"qwench:{name}") for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")]
            if values == [0, 0, 0]:
                return
            time.sleep(0.05)
        raise AssertionError(f"running, waiting, cache usage: {values}")

    def stop(self, signal_number=signal.SIGTERM, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the server did not end within {timeout} s; the log:\n{self.raw_log()}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log_file.close()


def post_bytes(path, body, extra=""):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n{extra}\r\n").encode() + text


def events_of(body):
    """The JSON of a stream's events, which must end with [DONE]."""
    lines = [line for line in body.decode().split("\n\n") if line and not line.startswith(":")]
    assert lines[-1] == "data: [DONE]", lines[-3:]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


class ServeTestCase(TestCase):
    """One server for all tests of a class, unless ARGUMENTS is None."""
    ARGUMENTS = ("-c", "2048")

    @classmethod
    def setUpClass(cls):
        if cls.ARGUMENTS is not None:
            cls.server = Server(*cls.ARGUMENTS)

    @classmethod
    def tearDownClass(cls):
        if cls.ARGUMENTS is None:
            return
        code = cls.server.stop()
        log = cls.server.raw_log()
        cls.server.__exit__()
        assert code == 0, f"exit code {code}\n{log[-3000:]}"
        assert "Sanitizer" not in log, log[-5000:]

    def assert_error(self, answer, status, param=None, says=None):
        code, _, body = answer
        self.assertEqual(code, status, body)
        self.assertEqual(set(body), {"error"}, body)
        self.assertEqual(set(body["error"]), {"message", "type", "param", "code"}, body)
        if param is not None:
            self.assertEqual(body["error"]["param"], param, body)
        for word in [says] if isinstance(says, str) else says or []:
            self.assertIn(word, body["error"]["message"])
