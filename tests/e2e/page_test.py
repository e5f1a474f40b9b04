"""The page that `qwench serve` opens, in headless Chromium with a real model."""
import json
import os
import re
import unittest

from page_case import PICTURES, SPOKEN, PageTestCase, event_stream, expect

EVIL = """# Title

<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"><svg onload="window.hacked = 1"></svg>
[click](javascript:window.hacked=1) [there](https://example.org/) ![p](https://example.org/p.png?secret)

**bold** and $x^2 + 1$ and $5 or $6

$$\\frac{a}{b} \\href{javascript:window.hacked=1}{c}$$

```js
const answer = "<img src=x onerror=window.hacked=1>";
```

| a | b |
|---|---|
| 1 | <iframe src=/ onload="window.hacked = 1"> |
"""


class Page(PageTestCase):
    def test_settings_between_the_arrows_steps_are_sent(self):
        sent = []
        self.page.route("**/v1/chat/completions", lambda route: (sent.append(json.loads(route.request.post_data)), route.fulfill(
            status=200, content_type="text/event-stream", body=event_stream("yes"))))
        self.page.click("#settings-button")
        for name, value in (("temperature", "0.33"), ("top_p", "0.955"), ("top_k", "2000"), ("seed", "4294967296"), ("min_p", "7")):
            self.page.fill(f"#set-{name}", value)
        self.page.press("#set-min_p", "Tab")
        self.send("hello")
        self.settle()
        self.assertEqual({name: sent[0].get(name) for name in ("temperature", "top_p", "top_k", "seed", "min_p")},
                         {"temperature": 0.33, "top_p": 0.955, "top_k": 2000, "seed": 4294967296, "min_p": None})

    def test_an_answer_that_failed_is_not_part_of_the_conversation(self):
        sent = []
        self.page.route("**/v1/chat/completions", lambda route: (sent.append(json.loads(route.request.post_data)), route.fulfill(
            status=500, content_type="application/json", body='{"error": {"message": "no"}}')))
        for text in ("hello", "again"):
            self.send(text)
            self.settle()
        self.problems.clear()  # the browser reports the status too
        self.assertEqual([message["role"] for message in sent[1]["messages"]], ["user", "user"])

    def test_a_conversation_streams_stops_and_is_there_after_a_reload(self):
        self.short_answers(300)
        self.send("Tell me a long story about a fox.")
        body = self.page.locator(".message.assistant .body")
        expect(body).to_contain_text(re.compile(r"\w+ \w+ \w+"))
        expect(self.page.locator("#stop")).to_be_visible()
        self.page.click("#stop")
        self.settle()
        expect(self.page.locator(".message.assistant .stats")).to_contain_text("stopped")
        told = body.inner_text()
        self.short_answers(6)
        self.send("What is the capital of France?")
        self.settle()
        expect(self.page.locator(".message.assistant .stats").last).to_contain_text("tok/s")
        expect(self.page.locator(".message.assistant .body").last).to_contain_text("Paris")
        self.page.reload()
        expect(self.page.locator(".message")).to_have_count(4)
        self.assertEqual(self.page.locator(".message.assistant .body").first.inner_text(), told)
        self.page.screenshot(path=os.path.join(PICTURES, "chat.png"))

    def test_editing_and_regenerating_make_branches(self):
        self.short_answers(4)
        self.send("Say one.")
        self.settle()
        self.page.click(".message.user [data-action=edit]")
        self.page.fill(".message.user textarea", "Say two.")
        self.page.click("[data-action=save]")
        self.settle()
        expect(self.page.locator(".message.user .branch")).to_have_text("2/2")
        self.page.click(".message.assistant [data-action=regenerate]")
        self.settle()
        expect(self.page.locator(".message.assistant .branch")).to_have_text("2/2")
        self.page.focus(".message.user [data-action=previous]")
        self.page.keyboard.press("Enter")
        expect(self.page.locator(".message.user .body")).to_have_text("Say one.")
        self.page.keyboard.press("Tab")
        expect(self.page.locator(".message.user [data-action=copy]")).to_be_focused()  # the keyboard is where it was
        expect(self.page.locator(".message")).to_have_count(2)

    def test_model_text_is_never_html(self):
        self.answer_with({"reasoning_content": "<b>hm</b>"}, *({"content": part} for part in re.findall(r"(?s).{1,7}", EVIL)))
        self.send("<img src=x onerror='window.hacked=1'>")
        self.settle()
        body = self.page.locator(".message.assistant .body")
        expect(body.locator("strong")).to_have_text("bold")
        expect(body.locator("h1")).to_have_text("Title")
        expect(body.locator(".katex")).to_have_count(2)
        expect(body).to_contain_text("$5 or $6")
        expect(body.locator("pre .hljs-keyword")).to_have_text("const")
        expect(body.locator("td").first).to_have_text("1")
        self.assertEqual(self.page.locator("#messages img, #messages script, #messages iframe, #messages svg[onload]").count(), 0)
        for link in body.locator("a").all():
            self.assertRegex(link.get_attribute("href") or "https:", r"^https?:")
        expect(self.page.locator("details.reasoning .text")).to_have_text("<b>hm</b>")
        self.assertFalse(self.page.locator("details.reasoning").evaluate("details => details.open"))
        body.locator("pre .copy").click()
        expect(body.locator("pre .copy")).to_have_text("copied")
        self.page.wait_for_timeout(200)
        self.assertIsNone(self.page.evaluate("window.hacked ?? null"))
        self.page.screenshot(path=os.path.join(PICTURES, "markdown.png"))

    def test_nothing_from_elsewhere_may_run(self):
        status, headers, _ = self.server.get("/")
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["X-DNS-Prefetch-Control"], "off")
        status, again, body = self.server.get("/", headers={"If-None-Match": headers["ETag"]})
        self.assertEqual((status, body), (304, b""))
        self.assertEqual(self.server.get("/page/nothing.js")[0], 404)
        self.assertEqual(self.server.get("/page/../app.js")[0], 404)
        self.page.evaluate("""() => { const s = document.createElement('script'); s.textContent = 'window.inline = 1';
                                      document.body.append(s); }""")
        self.assertIsNone(self.page.evaluate("window.inline ?? null"))
        self.problems = [problem for problem in self.problems if "Content Security Policy" not in problem]

    def test_tokens_show_their_alternatives(self):
        self.short_answers(6)
        self.page.check("#set-logprobs")
        self.send("What is the capital of France?")
        self.settle()
        self.page.click("[data-action=tokens]")
        tokens = self.page.locator(".token")
        self.assertGreaterEqual(tokens.count(), 3)
        tokens.nth(1).hover()
        rows = self.page.locator("#token-tip tr")
        expect(rows).to_have_count(6)
        self.assertRegex(rows.nth(1).inner_text(), r"\d+\s+\d+\.\d\d %")
        self.page.screenshot(path=os.path.join(PICTURES, "tokens.png"))
        expect(self.page.locator("#set-top_p")).to_have_attribute("placeholder", re.compile("model's"))

    def test_the_engine_at_work(self):
        self.short_answers(40)
        self.send("Count to twenty.")
        self.page.click("#tab-engine")
        used = self.page.locator("[data-count=used]")
        expect(used).to_be_visible()
        expect(self.page.locator(".card[data-name=running] b")).to_have_text("0", timeout=60_000)
        expect(self.page.locator("[data-count=cached]")).to_have_text(re.compile(r"cached [1-9]"))
        self.page.wait_for_function("""() => { const c = document.querySelector('canvas.passes');
          return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v !== 0); }""")
        self.page.screenshot(path=os.path.join(PICTURES, "engine.png"))

    def test_dark_phone_and_chinese(self):
        self.answer_with({"content": "Hello **there**.\n\n```python\nprint(1)\n```"})
        self.send("Hi")
        self.settle()
        light = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        self.page.click("#theme")
        dark = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(light, dark)
        self.page.set_viewport_size({"width": 390, "height": 780})
        self.assertFalse(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        self.assertTrue(self.page.locator("#side").is_hidden())
        self.page.screenshot(path=os.path.join(PICTURES, "phone-dark.png"))
        self.page.click("#menu")
        expect(self.page.locator("#conversations li")).to_have_count(1)
        self.page.click("#language")
        expect(self.page.locator("#new-chat")).to_have_text("新对话")
        self.page.screenshot(path=os.path.join(PICTURES, "phone-chinese.png"))

    def test_conversations_go_out_and_come_back(self):
        self.spoken()
        self.send("A question")
        entry = {"token": "An", "id": 5, "logprob": -0.5, "bytes": [65, 110], "top_logprobs": [{"token": "The", "id": 6, "logprob": -1.5}]}
        self.page.evaluate("streams[0].say({ reasoning_content: 'Well.' })")
        self.say("An", logprobs={"content": [entry]})
        self.say(" answer.", logprobs={"content": [{**entry, "token": " answer.", "id": 7, "logprob": -9999.0},
                                                   {**entry, "token": "\ufffd", "bytes": [228, 189]}]})
        self.page.evaluate("""() => { const last = { finish_reason: "length" }; const s = streams[0]; const end = s.end;
          s.say({}, {}); end(last); }""")
        self.settle()
        self.send("Another")
        self.say("Half")
        expect(self.answers().last).to_have_text("Half")
        self.page.evaluate("streams[1].fail()")
        self.settle()
        self.page.click(".message.user >> nth=0 >> [data-action=edit]")
        self.page.fill(".message.user textarea", "A better question")
        self.page.click("[data-action=save]")
        self.end()
        self.settle()
        self.page.click(".message.user [data-action=previous]")
        expect(self.page.locator(".message")).to_have_count(4)
        first, shown = self.exported(), self.page.locator("#messages").inner_text()
        self.assertEqual(first["version"], 2)
        self.assertIn("cut at the limit", shown)
        self.assertIn("unfinished", shown)
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.page.click("#conversations .remove")
        expect(self.page.locator("#conversations li")).to_have_count(0)
        self.take_in(first)
        expect(self.page.locator(".message")).to_have_count(4)
        self.assertEqual(self.page.locator("#messages").inner_text(), shown)

        def tree(export, parent=None):
            nodes = export["conversations"][0]["nodes"].values()
            return sorted(([{**node, "id": 0, "parent": 0}, tree(export, node["id"])] for node in nodes if node["parent"] == parent), key=json.dumps)
        second = self.exported()
        self.assertEqual(tree(second), tree(first))
        self.assertNotEqual(set(second["conversations"][0]["nodes"]), set(first["conversations"][0]["nodes"]))
        self.page.reload()
        expect(self.page.locator(".message")).to_have_count(4)
        self.page.click("[data-action=tokens]")
        expect(self.page.locator(".token")).to_have_text(["An", " answer.", "⟨e4 bd⟩"])
        self.page.locator(".token").first.focus()
        self.page.keyboard.press("ArrowRight")
        expect(self.page.locator("#token-tip tr").nth(1)).to_contain_text("answer.")

    def test_files_that_are_no_exports_are_refused(self):
        node = {"role": "user", "content": "x", "parent": None, "time": 1}

        def file(conversation, **more):
            whole = {"title": "t", "time": 1, "leaf": "a", "nodes": {"a": node}, **conversation}
            return {"format": "qwench-conversations", "version": 2, "conversations": [whole], **more}
        for bad, why in (("{", "no JSON"), ("[1]", "format"), ({"a": 1}, "format"), (file({}, version=3), "version"), (file({}, conversations={}), "a list"),
                         (file({"nodes": {"a": {**node, "role": "system"}}}), "role"), (file({"nodes": {"a": {**node, "content": ["x"]}}}), "content"),
                         (file({"nodes": {"a": {**node, "parent": "b"}, "b": {**node, "parent": "a"}}}), "above itself"),
                         (file({"nodes": {"a": {**node, "parent": "z"}}}), "no such node"), (file({"leaf": "__proto__"}), "leaf"),
                         (file({"nodes": {"a": {**node, "time": "now"}}}), "time"), (file({"title": {}}), "title"),
                         (file({"nodes": {str(i): node for i in range(10001)}}), "more than 10000"),
                         (file({"nodes": {"a": {**node, "usage": {"prompt": "<b>", "completion": 1}}}}), "usage.prompt"),
                         (file({"nodes": {"a": {**node, "logprobs": [{"token": "x", "logprob": "y"}]}}}), "logprobs[0].logprob")):
            self.take_in(bad)
            expect(self.page.locator("#notice")).to_contain_text(why)
        expect(self.page.locator("#notice")).to_contain_text("no export")
        expect(self.page.locator("#conversations li")).to_have_count(0)
        polluted = json.dumps(file({"title": "<img src=x onerror=window.hacked=1>", "nodes": {"__proto__": node, "a": {**node, "parent": "__proto__"}}}))
        polluted = polluted.replace('"content": "x"', '"content": "x", "error": "constructor", "finish": "toString"')
        self.take_in(polluted.replace('"role": "user"', '"role": "user", "__proto__": {"bad": 1}'))
        expect(self.page.locator(".message")).to_have_count(2)
        self.assertIsNone(self.page.evaluate("({}).bad ?? ({}).role ?? window.hacked ?? null"))

    def test_a_reload_keeps_what_there_is_of_an_answer(self):
        self.spoken()
        self.send("A question")
        self.page.fill("#input", "a draft")
        self.say("The first")
        expect(self.answers()).to_have_text("The first")
        self.say(" half")  # sooner than the next time that it is stored
        self.page.reload()
        expect(self.answers()).to_have_text("The first half")
        expect(self.stats()).to_have_text("unfinished")
        expect(self.page.locator("#input")).to_have_value("a draft")

    def test_an_answer_whose_connection_breaks_off_is_kept_and_says_so(self):
        self.spoken()
        self.send("A question")
        self.say("The first half")
        self.page.evaluate("streams[0].fail()")
        expect(self.answers()).to_have_text("The first half")
        expect(self.stats()).to_have_text("unfinished")
        expect(self.page.locator(".message .error")).to_contain_text("broke off")

    def test_answers_go_on_behind_other_conversations(self):
        self.spoken()
        self.send("Fox")
        self.say("The fox ")
        export = json.dumps({"format": "qwench-conversations", "version": 1, "conversations": [
            {"title": "Older", "time": 5, "leaf": "b", "nodes": {"a": {"role": "user", "content": "Hi", "parent": None, "time": 1},
                                                                 "b": {"role": "assistant", "content": "Ho", "parent": "a", "time": 2}}}]})
        self.page.set_input_files("#import-file", {"name": "x.json", "mimeType": "application/json", "buffer": export.encode()})
        expect(self.answers()).to_have_text("Ho")
        expect(self.page.locator("[data-action=regenerate]")).to_be_enabled()
        expect(self.page.locator("#send")).to_be_visible()
        self.send("Dog")
        self.say("The dog")
        self.say("barks.", 0)
        self.end(0)
        self.page.click("#conversations .open >> text=Fox")
        expect(self.answers()).to_have_text("The fox barks.")
        expect(self.page.locator("[data-action=regenerate]")).to_be_enabled()
        # One that is removed while it streams does not come back.
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.page.click("#conversations li:has-text('Older') .remove")
        expect(self.page.locator("#conversations .answering")).to_have_count(0)
        expect(self.page.locator("#conversations li")).to_have_count(1)
        self.page.wait_for_timeout(100)
        self.page.reload()
        expect(self.answers()).to_have_text("The fox barks.")
        expect(self.page.locator("#conversations li")).to_have_count(1)

    def test_language_and_theme_lose_nothing(self):
        self.answer_with({"reasoning_content": "hm"}, *({"content": f"Line {i}.\n\n"} for i in range(60)))
        self.send("A question")
        self.settle()
        self.page.click("details.reasoning summary")
        self.page.click("#settings-button")
        self.page.fill("#system", "Be brief.")
        self.page.click(".message.user [data-action=edit]")
        self.page.fill(".message.user textarea", "Another question")
        self.page.fill("#input", "a draft")
        self.page.evaluate("document.getElementById('messages').scrollTop = 300")
        for button in ("#language", "#theme", "#tab-engine", "#tab-chat"):
            self.page.click(button)
            self.page.wait_for_timeout(50)
        expect(self.page.locator(".message.user textarea")).to_have_value("Another question")
        expect(self.page.locator("#input")).to_have_value("a draft")
        expect(self.page.locator("#system")).to_have_value("Be brief.")
        self.assertTrue(self.page.locator("details.reasoning").evaluate("details => details.open"))
        self.assertEqual(self.page.evaluate("document.getElementById('messages').scrollTop"), 300)
        self.page.press(".message.user textarea", "Escape")
        expect(self.page.locator(".message.user .body")).to_have_text("A question")

    def test_formulas_and_tables_look_right_under_the_policy(self):
        wide = " + ".join(f"x_{{{i}}}" for i in range(80))
        self.answer_with({"content": "|a|b|c|\n|:-|:-:|-:|\n|1|2|3|\n\n$\\frac{1}{2}$ and $\\undefinedthing$ and $\\frac{$ here\n\n"
                          f"$$\\color{{red}}\\sqrt{{\\begin{{pmatrix}}a & b\\\\ c & d\\end{{pmatrix}}}}$$\n\n$${wide}$$\n\n${wide}$"})
        self.send("Maths")
        self.settle()
        body = self.answers()
        style = lambda locator, name: locator.evaluate(f"element => getComputedStyle(element).{name}")
        self.assertEqual([style(cell, "textAlign") for cell in body.locator("td").all()], ["left", "center", "right"])
        bad = style(body.locator(".katex-error"), "color")
        expect(body.locator(".katex-error")).to_have_text("\\frac{")
        self.assertEqual(style(body.locator(".katex-html .mord.text").first, "color"), bad)
        self.assertEqual(style(body.locator(".katex-display .sqrt").first, "color"), "rgb(255, 0, 0)")
        struts = body.locator(".katex-display .strut").first
        self.assertGreater(struts.evaluate("strut => strut.getBoundingClientRect().height"), 30)  # by KaTeX's own styles
        self.page.screenshot(path=os.path.join(PICTURES, "formulas.png"))
        self.page.set_viewport_size({"width": 390, "height": 780})
        self.assertFalse(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))
        self.assertFalse(self.page.evaluate("document.getElementById('messages').scrollWidth > innerWidth"))
        self.page.screenshot(path=os.path.join(PICTURES, "formulas-phone.png"))

    def test_a_key_and_a_server_that_is_away_are_asked_for(self):
        state = "locked"

        def answer(route):
            if state == "away":
                route.abort()
            elif state == "loading":
                route.fulfill(status=503, content_type="application/json", body='{"error": {"message": "no", "code": "loading"}}')
            elif state == "locked" and route.request.headers.get("authorization") != "Bearer right":
                route.fulfill(status=401, content_type="application/json", body='{"error": {"message": "no"}}')
            else:
                route.continue_()
        self.page.route("**/props", answer)
        self.page.reload()
        expect(self.page.locator("#notice")).to_contain_text("needs an API key")
        expect(self.page.locator("#set-key")).to_be_focused()
        for key, said in (("wrong", "does not know"), ("right", "")):
            self.page.fill("#set-key", key)
            self.page.press("#set-key", "Enter")
            expect(self.page.locator("#notice")).to_contain_text(said)
        expect(self.page.locator("#notice")).to_be_hidden()
        state = "away"
        self.page.reload()
        expect(self.page.locator("#notice")).to_contain_text("does not answer")
        state = "loading"
        expect(self.page.locator("#notice")).to_contain_text("being loaded")
        state = "there"
        expect(self.page.locator("#notice")).to_be_hidden()
        expect(self.page.locator("#model")).not_to_be_empty()
        self.problems.clear()  # the browser reports each

    def conversation_id(self):
        return self.page.evaluate("""() => new Promise((done) => {
            indexedDB.open("qwench", 1).onsuccess = (opened) => opened.target.result.transaction("conversations")
                .objectStore("conversations").getAll().onsuccess = (event) => done(event.target.result[0].id);
        })""")

    def test_two_tabs_share_what_is_stored(self):
        self.spoken()
        self.send("Fox")
        self.say("The fox")
        other = self.context.new_page()
        other.goto(self.server.url + "/")
        expect(other.locator(".message.assistant .body")).to_have_text("The fox")
        self.say(" barks.")
        self.end()
        expect(other.locator(".message.assistant .body")).to_have_text("The fox barks.")
        other.evaluate(SPOKEN)
        other.fill("#input", "And the dog?")
        other.press("#input", "Enter")
        expect(self.page.locator(".message")).to_have_count(4)
        self.page.click(".message.assistant >> nth=0 >> [data-action=regenerate]")  # both write
        self.say("Another fox")
        other.evaluate("streams[0].say({ content: 'It too.' }); streams[0].end()")
        self.end()
        expect(other.locator(".message.assistant .body").last).to_have_text("It too.")
        expect(other.locator(".message.assistant .branch")).to_have_text("1/2")
        self.page.evaluate("""() => new Promise((done) => {  // what another tab would still have of an answer that is finished here
            indexedDB.open("qwench", 1).onsuccess = (opened) => {
                const transaction = opened.target.result.transaction("conversations", "readwrite");
                const store = transaction.objectStore("conversations");
                store.getAll().onsuccess = (event) => {
                    const [stored] = event.target.result;
                    for (const node of Object.values(stored.nodes)) if (node.content === "It too.") { node.content = ""; delete node.finish; }
                    store.put(stored);
                };
                transaction.oncomplete = () => { new BroadcastChannel("qwench").postMessage({ changed: conversationId }); done(); };
            };
        })""".replace("conversationId", repr(self.conversation_id())))
        other.wait_for_timeout(300)
        expect(other.locator(".message.assistant .body").last).to_have_text("It too.")
        self.page.reload()
        expect(self.page.locator(".message.assistant .branch")).to_contain_text("/2")
        other.on("dialog", lambda dialog: dialog.accept())
        other.click("#conversations .remove")
        expect(self.page.locator("#conversations li")).to_have_count(0)
        expect(self.page.locator(".message")).to_have_count(0)

    def test_a_full_disk_is_said(self):
        self.spoken()
        self.devtools.send("Storage.overrideQuotaForOrigin", {"origin": self.server.url, "quotaSize": 1000})
        self.send("A question")
        self.say("An answer")
        self.end()
        self.settle()
        expect(self.page.locator("#notice")).to_contain_text("QuotaExceeded")
        expect(self.answers()).to_have_text("An answer")
        self.devtools.send("Storage.overrideQuotaForOrigin", {"origin": self.server.url})
        self.send("Another")
        self.end()
        expect(self.page.locator("#notice")).to_be_hidden()

    def test_new_text_is_followed_at_the_end_alone(self):
        self.spoken()
        self.send("A question")
        self.say("\n\n".join(f"Line {i}." for i in range(60)))
        place = "() => { const m = document.getElementById('messages'); return m.scrollHeight - m.clientHeight - m.scrollTop; }"
        expect(self.answers()).to_contain_text("Line 59.")
        self.page.wait_for_function(f"() => ({place})() < 2")
        self.page.hover("#messages")
        self.page.mouse.wheel(0, -30)
        self.page.wait_for_function(f"() => ({place})() > 20")
        self.say("\n\nOne more.")
        expect(self.answers()).to_contain_text("One more.")
        self.assertGreater(self.page.evaluate(place), 20)
        self.page.mouse.wheel(0, 3000)
        self.page.wait_for_function(f"() => ({place})() < 2")
        self.page.click("#tab-engine")
        self.say("\n\n".join(f"Last {i}." for i in range(20)))
        self.page.wait_for_timeout(200)
        self.page.click("#tab-chat")
        expect(self.answers()).to_contain_text("Last 19.")
        self.page.wait_for_function(f"() => ({place})() < 2")
        self.end()

    def test_an_error_of_the_server_is_shown(self):
        self.page.route("**/v1/chat/completions", lambda route: route.fulfill(
            status=400, content_type="application/json", body=json.dumps({"error": {"message": "the prompt is too long"}})))
        self.send("Hi")
        expect(self.page.locator(".message .error")).to_have_text("the prompt is too long")
        self.problems = [problem for problem in self.problems if "400" not in problem]


if __name__ == "__main__":
    unittest.main()
