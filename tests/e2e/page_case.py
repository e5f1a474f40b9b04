"""What the tests of the page share: a server with a real model, and headless Chromium."""
import json
import os
import shutil
import sys
import unittest

from serve_case import ServeTestCase
from support import ROOT

sys.path.insert(0, os.path.join(ROOT, "build", "python-packages"))
try:
    from playwright.sync_api import expect, sync_playwright
    expect.set_options(timeout=30_000)  # under load, as in CI
except ImportError:
    expect = sync_playwright = None
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = os.path.join(ROOT, "build", "screenshots")


def event_stream(*deltas, **last):
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **last})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


# Answers that the test speaks: streams[i].say(delta), .end(), .fail().
SPOKEN = """() => {
  const real = window.fetch;
  window.streams = [];
  window.fetch = (path, options) => {
    if (!String(path).includes("/v1/chat/completions")) return real(path, options);
    let controller = null;
    const send = (data) => controller.enqueue(new TextEncoder().encode(`data: ${data}\\n\\n`));
    const choice = (delta, more) => send(JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null, ...more }] }));
    options.signal.addEventListener("abort", () => controller.error(new DOMException("stopped", "AbortError")));
    window.streams.push({ asked: JSON.parse(options.body), say: choice, fail: () => controller.error(new TypeError("gone")),
      end: (more) => { choice({}, { finish_reason: "stop", ...more }); send("[DONE]"); controller.close(); } });
    return Promise.resolve(new Response(new ReadableStream({ start(made) { controller = made; } }), { status: 200 }));
  };
}"""


@unittest.skipUnless(sync_playwright and CHROMIUM, "playwright or chromium is not installed: ./dev test installs both")
class PageTestCase(ServeTestCase):
    ARGUMENTS = ("-c", "1024", "--max-batch", "4")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.makedirs(PICTURES, exist_ok=True)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        cls.context = cls.browser.new_context(viewport={"width": 1200, "height": 800}, locale="en-US", accept_downloads=True)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        super().tearDownClass()

    def setUp(self):
        self.page = self.context.new_page()
        self.addCleanup(lambda: [page.close() for page in self.context.pages])
        self.devtools = self.context.new_cdp_session(self.page)
        self.devtools.send("Storage.clearDataForOrigin", {"origin": self.server.url, "storageTypes": "local_storage,indexeddb"})
        self.page.set_default_timeout(60_000)
        self.problems, self.elsewhere = [], []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        self.page.on("request", lambda request: request.url.startswith((self.server.url, "blob:", "data:")) or
                     self.elsewhere.append(request.url))
        self.page.goto(self.server.url + "/")
        expect(self.page.locator("#model")).not_to_be_empty()

    def tearDown(self):
        self.assertEqual(self.problems, [])
        self.assertEqual(self.elsewhere, [])

    def send(self, text):
        self.page.fill("#input", text)
        self.page.press("#input", "Enter")

    def settle(self):
        expect(self.page.locator("#send")).to_be_visible()

    def answer_with(self, *deltas, **last):
        self.page.route("**/v1/chat/completions", lambda route: route.fulfill(
            status=200, content_type="text/event-stream", body=event_stream(*deltas, **last)))

    def spoken(self):
        self.page.evaluate(SPOKEN)

    def say(self, text, stream=-1, **more):
        self.page.evaluate("([i, text, more]) => streams.at(i).say({ content: text }, more)", [stream, text, more])

    def end(self, stream=-1):
        self.page.evaluate("(i) => streams.at(i).end()", stream)

    def answers(self):
        return self.page.locator(".message.assistant .body")

    def stats(self):
        return self.page.locator(".message.assistant .stats")

    def short_answers(self, tokens):
        if self.page.locator("#settings").is_hidden():
            self.page.click("#settings-button")
        self.page.fill("#set-max_tokens", str(tokens))
        self.page.fill("#set-temperature", "0")
        self.page.press("#set-temperature", "Tab")

    def exported(self):
        with self.page.expect_download() as download:
            self.page.click("#export")
        with open(download.value.path()) as file:
            return json.load(file)

    def take_in(self, data):
        text = data if isinstance(data, str) else json.dumps(data)
        self.page.set_input_files("#import-file", {"name": "x.json", "mimeType": "application/json", "buffer": text.encode()})
