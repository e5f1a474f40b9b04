"""qwench chat on a pseudo-terminal, as a person meets it."""
import os
import pty
import re
import select
import signal
import tempfile
import time
import unittest

from support import BINARY, SANITIZED, SMOLLM2, TestCase, fetched

PATIENCE = 300 if SANITIZED else 60


class Terminal:
    def __init__(self, *arguments, term="xterm"):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = term
            os.execv(BINARY, [BINARY, *arguments])
        self.seen = ""

    def wait_for(self, pattern, since=0):
        """Read until the pattern appears in what came after position since; gives the position behind it."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen[since:])
            if found:
                return since + found.end()
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in {self.seen[since:]!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                if not data:
                    raise AssertionError(f"the program ended before {pattern!r}: {self.seen[since:]!r}")
                self.seen += data.decode("utf-8", "replace")

    def type(self, text):
        os.write(self.fd, text.encode())
        return len(self.seen)

    def exit_code(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError(f"chat did not end: {self.seen[-2000:]!r}")


class Chat(TestCase):
    def start(self, *flags, term="xterm"):
        terminal = Terminal("chat", fetched(SMOLLM2), "--temp", "0", "-c", "1024", *flags, term=term)
        self.addCleanup(self.end, terminal)
        return terminal

    def end(self, terminal):
        try:
            os.kill(terminal.pid, signal.SIGKILL)
            os.waitpid(terminal.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def test_history_commands_and_a_clean_end(self):
        chat = self.start("-n", "24")
        chat.wait_for(r"(?i)smollm2")
        at = chat.type("/help\n")
        for command in ("/system", "/reset", "/save", "/load", "/params", "/think", "/nothink"):
            chat.wait_for(re.escape(command), at)
        at = chat.type("What is the capital of France?\n")
        at = chat.wait_for(r"Paris", at)
        chat.wait_for(r"tok/s", at)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "talk.json")
            chat.type(f"/save {path}\n")
            end = time.monotonic() + PATIENCE
            while not os.path.exists(path) and time.monotonic() < end:
                time.sleep(0.05)
            at = chat.type(f"/load {path}\n")
            chat.wait_for(r"talk\.json", at)
            chat.type("/reset\n")
            at = chat.type("/params\n")
            chat.wait_for(r"temperature", at)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            self.assertIn("capital of France", text)
            self.assertIn("Paris", text)
        at = chat.type("/fly\n")
        chat.wait_for(r"/fly", at)
        chat.type("\x04")
        self.assertEqual(chat.exit_code(), 0, chat.seen[-1000:])

    def test_control_c_at_the_prompt_clears_the_line(self):
        chat = self.start("-n", "4")
        at = chat.wait_for(r">>> ")
        chat.type("half a line")
        chat.wait_for(r"half a line", at)
        at = chat.type("\x03")
        chat.wait_for(r">>> ", at)
        at = chat.type("/history\n")
        chat.wait_for(r"the conversation is empty", at)
        chat.type("\x04")
        self.assertEqual(chat.exit_code(), 0, chat.seen[-1000:])

    def test_a_dumb_terminal_gets_no_escape_sequences(self):
        chat = self.start("-n", "4", term="dumb")
        chat.wait_for(r"Ctrl-D ends")
        at = chat.type("Hello\n")
        chat.wait_for(r"tok/s.*cut at -n 4", at)
        chat.type("\x04")
        self.assertEqual(chat.exit_code(), 0, chat.seen[-1000:])
        self.assertNotIn("\x1b", chat.seen)

    def test_control_c_stops_the_answer_and_not_the_program(self):
        chat = self.start("-n", "900")
        chat.wait_for(r"(?i)smollm2")
        at = chat.type("Write a very long story about the sea, the mountains and the stars.\n")
        at = chat.wait_for(r"stars\.[\s\S]*[A-Za-z]{3,}[\s\S]*[A-Za-z]{3,}", at)
        time.sleep(1.0)
        chat.type("\x03")
        time.sleep(1.0)
        at = chat.type("/params\n")
        chat.wait_for(r"temperature", at)
        chat.type("\x04")
        self.assertEqual(chat.exit_code(), 0, chat.seen[-1000:])


if __name__ == "__main__":
    unittest.main()
