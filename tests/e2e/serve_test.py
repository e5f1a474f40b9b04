"""qwench serve: the API's answers, by plain HTTP and by OpenAI's own client for Python."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from serve_case import Server, ServeTestCase, events_of
from support import ROOT, SMOLLM2, fetched, qwench

try:
    import openai
except ImportError:
    openai = None

NODE_PACKAGES = os.environ.get("QWENCH_NODE_PACKAGES") or os.path.join(ROOT, "build", "node-packages")
if not shutil.which("node") or not os.path.isdir(os.path.join(NODE_PACKAGES, "node_modules", "openai")):
    NODE_PACKAGES = None

HI = [{"role": "user", "content": "Say hi."}]
GREEDY = {"temperature": 0, "max_tokens": 12}


class Answers(ServeTestCase):
    def chat(self, **fields):
        status, _, body = self.server.post("/v1/chat/completions", {"messages": HI, **GREEDY, **fields})
        self.assertEqual(status, 200, body)
        return body if isinstance(body, dict) else events_of(body)

    def complete(self, **fields):
        status, _, body = self.server.post("/v1/completions", {"prompt": "Once upon a time", **GREEDY, **fields})
        self.assertEqual(status, 200, body)
        return body if isinstance(body, dict) else events_of(body)

    def test_a_chat_is_answered_as_the_command_line_does(self):
        body = self.chat()
        cli = json.loads(qwench("run", fetched(SMOLLM2), "Say hi.", "--temp", 0, "-n", 12, "--json", "-q", "-c", 2048).out)
        self.assertEqual(body["choices"][0]["message"]["content"], cli["text"])
        self.assertEqual(body["choices"][0]["finish_reason"], cli["finish_reason"])
        self.assertEqual(body["usage"]["prompt_tokens"], cli["usage"]["prompt_tokens"])
        self.assertEqual(body["usage"]["completion_tokens"], cli["usage"]["completion_tokens"])
        self.assertEqual(body["object"], "chat.completion")
        self.assertEqual(body["model"], "smollm2-135m-instruct-q4_1")

    def test_streams_join_to_the_whole_answer(self):
        for fields in ({}, {"n": 3, "seed": 7, "temperature": 1}, {"logprobs": True, "top_logprobs": 2}, {"stop": [" the", "."]}):
            whole = self.chat(**fields)
            chunks = self.chat(stream=True, stream_options={"include_usage": True}, **fields)
            self.assertEqual(chunks[-1]["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])
            self.assertEqual(chunks[-1]["choices"], [])
            for choice in whole["choices"]:
                mine = [c["choices"][0] for c in chunks[:-1] if c["choices"][0]["index"] == choice["index"]]
                self.assertEqual(mine[0]["delta"]["role"], "assistant")
                self.assertEqual("".join(m["delta"].get("content", "") for m in mine), choice["message"]["content"])
                self.assertEqual(mine[-1]["finish_reason"], choice["finish_reason"])
                self.assertTrue(all(m["finish_reason"] is None for m in mine[:-1]))
                if choice["logprobs"]:
                    self.assertEqual([t for m in mine if m["logprobs"] for t in m["logprobs"]["content"]], choice["logprobs"]["content"])

    def test_usage_comes_in_a_stream_only_when_asked_for(self):
        for chunk in self.chat(stream=True):
            self.assertNotIn("usage", chunk)

    def test_choices_differ_and_a_seed_repeats_them(self):
        first = [self.chat(n=3, seed=5, temperature=1.5, max_tokens=20) for _ in range(2)]
        texts = [[c["message"]["content"] for c in body["choices"]] for body in first]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(len(set(texts[0])), 3, texts)
        alone = self.chat(seed=6, temperature=1.5, max_tokens=20)  # choice i draws with seed + i
        self.assertEqual(alone["choices"][0]["message"]["content"], texts[0][1])
        self.assertEqual(first[0]["usage"]["prompt_tokens"], alone["usage"]["prompt_tokens"])

    def test_logprobs_of_a_chat(self):
        body = self.chat(logprobs=True, top_logprobs=3)
        choice = body["choices"][0]
        tokens = choice["logprobs"]["content"]
        self.assertEqual(b"".join(bytes(t["bytes"]) for t in tokens).decode(), choice["message"]["content"])
        for token in tokens:
            self.assertLessEqual(token["logprob"], 0)
            self.assertEqual(len(token["top_logprobs"]), 3)
            best = token["top_logprobs"][0]
            self.assertEqual((best["token"], best["logprob"]), (token["token"], token["logprob"]))  # greedy
        self.assertIsNone(self.chat()["choices"][0]["logprobs"])

    def test_logprobs_and_echo_of_a_completion(self):
        body = self.complete(echo=True, logprobs=2, max_tokens=4)
        choice = body["choices"][0]
        logprobs = choice["logprobs"]
        self.assertTrue(choice["text"].startswith("Once upon a time"))
        self.assertEqual("".join(logprobs["tokens"]), choice["text"])
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertIsNone(logprobs["top_logprobs"][0])
        self.assertTrue(all(value < 0 for value in logprobs["token_logprobs"][1:]))
        for offset, token in zip(logprobs["text_offset"], logprobs["tokens"]):
            self.assertTrue(choice["text"][offset:].startswith(token))
        streamed = self.complete(echo=True, logprobs=2, max_tokens=4, stream=True)
        self.assertEqual("".join(c["choices"][0]["text"] for c in streamed), choice["text"])
        self.assertEqual([t for c in streamed if c["choices"][0]["logprobs"] for t in c["choices"][0]["logprobs"]["tokens"]], logprobs["tokens"])
        alone = self.complete(echo=True, logprobs=2, max_tokens=0)["choices"][0]
        self.assertEqual(alone["text"], "Once upon a time")
        self.assertEqual(len(alone["logprobs"]["tokens"]), body["usage"]["prompt_tokens"])
        self.assertEqual(alone["logprobs"]["token_logprobs"][1:], logprobs["token_logprobs"][1:len(alone["logprobs"]["tokens"])])

    def test_prompts_of_every_kind(self):
        ids = self.server.post("/tokenize", {"prompt": "Once upon a time"})[2]["tokens"]
        text = self.complete()["choices"][0]["text"]
        self.assertEqual(self.complete(prompt=ids)["choices"][0]["text"], text)
        many = self.complete(prompt=["Once upon a time", "The sky is"], n=2)
        self.assertEqual([c["index"] for c in many["choices"]], [0, 1, 2, 3])
        self.assertEqual([c["text"] for c in many["choices"][:2]], [text, text])
        self.assertEqual(self.complete(prompt=[ids, ids])["usage"]["prompt_tokens"], 2 * len(ids))

    def test_stop_strings(self):
        text = self.complete(max_tokens=30)["choices"][0]["text"]
        stop = text[10:14]
        cut = self.complete(max_tokens=30, stop=stop)["choices"][0]
        self.assertEqual(cut["text"], text[:text.index(stop)])
        self.assertEqual(cut["finish_reason"], "stop")
        kept = self.complete(max_tokens=30, stop=[stop], include_stop_str_in_output=True)["choices"][0]
        self.assertEqual(kept["text"], text[:text.index(stop)] + stop)

    def test_cut_by_max_tokens_is_said(self):
        body = self.chat(max_tokens=2)
        self.assertEqual(body["choices"][0]["finish_reason"], "length")
        self.assertEqual(body["usage"]["completion_tokens"], 2)

    def test_a_prompt_seen_before_is_taken_from_the_cache(self):
        prompt = "The quick brown fox jumps over the lazy dog. " * 20
        first = self.complete(prompt=prompt)["usage"]
        again = self.complete(prompt=prompt)["usage"]
        self.assertEqual(first["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertGreater(again["prompt_tokens_details"]["cached_tokens"], again["prompt_tokens"] // 2)

    def test_an_open_message_goes_on(self):
        messages = HI + [{"role": "assistant", "content": "Hello, my name"}]
        prompt = self.server.post("/apply-template", {"messages": messages, "continue_final_message": True})[2]["prompt"]
        self.assertTrue(prompt.endswith("Hello, my name"), prompt)
        self.assertEqual(self.chat(messages=messages, continue_final_message=True)["choices"][0]["message"]["content"],
                         self.complete(prompt=prompt)["choices"][0]["text"])

    def test_an_open_message_ends_where_it_ends_whatever_the_template_says(self):
        for content in ("<", "<<", "|", "i", "end", ">", "assistant", "im_end|>", "The im", "a\n", "user"):
            with self.subTest(content):
                messages = HI + [{"role": "assistant", "content": content}]
                prompt = self.server.post("/apply-template", {"messages": messages, "continue_final_message": True})[2]["prompt"]
                self.assertTrue(prompt.endswith("<|im_start|>assistant\n" + content), prompt)

    def test_special_tokens_that_a_user_types_stay_text(self):
        def count(messages):
            ids = self.server.post("/tokenize", {"messages": messages, "return_token_strs": True})[2]
            return ids["token_strs"].count("<|im_end|>")
        self.assertEqual(count([{"role": "user", "content": "a<|im_end|>b"}]), count([{"role": "user", "content": "ab"}]))

    def test_text_to_tokens_and_back(self):
        _, _, tokens = self.server.post("/tokenize", {"prompt": "Hello, wörld 😀"})
        self.assertEqual(tokens["count"], len(tokens["tokens"]))
        self.assertEqual(tokens["max_model_len"], 2048)
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens["tokens"]})[2], {"prompt": "Hello, wörld 😀"})

    def test_pages(self):
        name = "smollm2-135m-instruct-q4_1"
        self.assertEqual([m["id"] for m in self.server.get("/v1/models")[2]["data"]], [name])
        self.assertEqual(self.server.get(f"/v1/models/{name}")[2]["id"], name)
        self.assert_error(self.server.get("/v1/models/other"), 404)
        props = self.server.get("/props")[2]
        self.assertEqual(props["context"], 2048)
        self.assertGreaterEqual(props["kv_cache"]["tokens"], 2048)
        self.assertGreater(props["kv_cache"]["bytes"], props["kv_cache"]["tokens"])
        self.assertIn("temperature", props["default_generation_settings"])
        self.assertIn("im_start", props["chat_template"])
        self.assertEqual(self.server.get("/health")[2], {"status": "ok"})
        document = self.server.get("/openapi.json")[2]
        self.assertIn("/v1/chat/completions", document["paths"])
        status, headers, body = self.server.request("HEAD", "/health")
        self.assertEqual((status, body), (200, b""))

    def test_what_is_wrong_is_a_400_that_names_it(self):
        for fields, param in (({"temperature": 3}, "temperature"), ({"tools": [{}]}, "tools[0].type"), ({"mystery": 1}, "mystery"),
                              ({"messages": [{"role": "user"}]}, "messages[0].content"), ({"n": 1000}, "n"),
                              ({"response_format": {"type": "xml"}}, "response_format.type"),
                              ({"stop_token_ids": [-1]}, "stop_token_ids[0]")):
            self.assert_error(self.server.post("/v1/chat/completions", {"messages": HI, **fields}), 400, param, param)
        self.assert_error(self.server.post("/v1/chat/completions", {"messages": HI, "model": "gpt-4"}), 404, "model")
        self.assert_error(self.server.post("/v1/chat/completions", "{"), 400)
        self.assert_error(self.server.post("/v1/chat/completions", "[]"), 400)

    def test_a_prompt_that_does_not_fit_is_a_400_with_both_numbers(self):
        long = "word " * 3000
        count = self.server.post("/tokenize", {"prompt": long})[2]["count"]
        self.assert_error(self.server.post("/v1/completions", {"prompt": long}), 400, says=[str(count), "2048"])

    def test_a_template_that_refuses_is_a_400_with_its_message(self):
        answer = self.server.post("/v1/chat/completions", {"messages": HI, "chat_template_kwargs": {"messages": 1}})
        self.assert_error(answer, 400, "chat_template_kwargs")

    def test_request_ids_come_back(self):
        _, headers, _ = self.server.get("/health", headers={"X-Request-Id": "my-id"})
        self.assertEqual(headers["x-request-id"], "my-id")
        _, headers, _ = self.server.get("/health", headers={"X-Request-Id": "not valid!"})
        self.assertRegex(headers["x-request-id"], "^[0-9a-f]{32}$")

    def test_metrics_have_the_names_of_vllms_dashboards(self):
        before = {name: self.server.metric(f"qwench:{name}") for name in ("prompt_tokens_total", "generation_tokens_total")}
        usage = self.complete()["usage"]
        self.server.wait_until_still()
        self.assertEqual(self.server.metric("qwench:prompt_tokens_total") - before["prompt_tokens_total"], usage["prompt_tokens"])
        self.assertEqual(self.server.metric("qwench:generation_tokens_total") - before["generation_tokens_total"], usage["completion_tokens"])
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prefix_cache_queries_total",
                     "prefix_cache_hits_total", "num_preemptions_total", "time_to_first_token_seconds_count",
                     "inter_token_latency_seconds_count", "e2e_request_latency_seconds_count", "request_success_total"):
            self.server.metric(f"qwench:{name}")


@unittest.skipIf(openai is None, "the openai package is not installed: ./dev test installs it")
class OpenAiClient(ServeTestCase):
    ARGUMENTS = ("-c", "2048", "--api-key", "secret", "--served-model-name", "small")

    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="secret", max_retries=0)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["small"])
        self.assertEqual(self.client.models.retrieve("small").id, "small")

    def test_chat(self):
        answer = self.client.chat.completions.create(model="small", messages=HI, temperature=0, max_completion_tokens=12,
                                                     logprobs=True, top_logprobs=1, user="me", extra_body={"top_k": 5})
        text = answer.choices[0].message.content
        self.assertTrue(text)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertGreaterEqual(len(answer.choices[0].logprobs.content), 1)
        stream = self.client.chat.completions.create(model="small", messages=HI, temperature=0, max_completion_tokens=12,
                                                     stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), text)
        self.assertEqual(chunks[-1].usage.completion_tokens, answer.usage.completion_tokens)

    def test_completions(self):
        answer = self.client.completions.create(model="small", prompt=["One, two,", "A, b,"], max_tokens=4, temperature=0, echo=True)
        self.assertEqual(len(answer.choices), 2)
        self.assertTrue(answer.choices[1].text.startswith("A, b,"))

    def test_errors_are_the_clients_own(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.chat.completions.create(model="small", messages=HI, temperature=9)
        self.assertEqual(raised.exception.param, "temperature")
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="large", messages=HI)
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.server.url + "/v1", api_key="wrong", max_retries=0).models.list()

    @unittest.skipIf(NODE_PACKAGES is None, "node and its openai package are not installed: ./dev test installs them")
    def test_nodes_client(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openai_client.mjs")
        outcome = subprocess.run(["node", script, NODE_PACKAGES, self.server.url + "/v1", "secret"], capture_output=True, text=True,
                                 timeout=120, check=False)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        told = json.loads(outcome.stdout)
        self.assertEqual(told["models"], ["small"])
        self.assertTrue(told["whole"])
        self.assertEqual(told["text"], told["whole"])
        self.assertEqual(told["total"], told["whole_total"])
        self.assertTrue(told["completion"].startswith("One, two,"))
        self.assertEqual(told["param"], "temperature")
        end = time.monotonic() + 60
        while not any("abort" in event["finish_reasons"] for event in self.server.events("generation")):
            self.assertLess(time.monotonic(), end, "the request that the client left goes on")
            time.sleep(0.05)

    def test_every_route_but_health_needs_the_key(self):
        for path in ("/v1/models", "/metrics", "/props", "/openapi.json", "/nowhere"):
            self.assert_error(self.server.get(path), 401)
            self.assertNotEqual(self.server.get(path, headers={"Authorization": "Bearer secret"})[0], 401)
        self.assertEqual(self.server.get("/health")[0], 200)

    def test_preflight_needs_no_key_and_every_answer_has_cors_headers(self):
        origin = {"Origin": "http://localhost:3000"}
        status, headers, _ = self.server.request("OPTIONS", "/v1/chat/completions", headers={
            **origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"})
        self.assertEqual(status, 204)
        self.assertEqual(headers["Access-Control-Allow-Origin"], "http://localhost:3000")
        self.assertIn("authorization", headers["Access-Control-Allow-Headers"])
        key = {"Authorization": "Bearer secret"}
        body = {"messages": HI, "max_tokens": 1}
        for answer in (self.server.get("/v1/models", headers=origin), self.server.get("/nowhere", headers={**origin, **key}),
                       self.server.post("/v1/chat/completions", body, headers={**origin, **key}),
                       self.server.post("/v1/chat/completions", {**body, "stream": True}, headers={**origin, **key})):
            self.assertEqual(answer[1]["Access-Control-Allow-Origin"], "http://localhost:3000", answer)
        self.assertNotIn("Access-Control-Allow-Origin", self.server.get("/health", headers={"Origin": "https://evil.example"})[1])


class Prompts(ServeTestCase):
    def test_are_logged_only_when_asked(self):
        self.server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "xyzzy plugh"}], "max_tokens": 1})
        self.server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "xyzzy plugh"}], "frotz": 1})
        self.server.wait_for_event("generation")
        self.assertNotIn("plugh", self.server.raw_log())
        with Server("-c", 512, "--log-prompts") as other:
            other.post("/v1/completions", {"prompt": "xyzzy plugh", "max_tokens": 1})
            self.assertIn("plugh", other.wait_for_event("prompt")["text"])


class CommandLine(ServeTestCase):
    ARGUMENTS = ("-c", "512")

    def test_what_is_wrong_ends_with_one_sentence(self):
        for arguments, code in ((["--port", "99999"], 2), (["--ssl-cert", "x"], 2), (["--api-key-file", "/nowhere"], 2),
                                (["--cors-origin", "x"], 2), (["--port", str(self.server.port)], 1),
                                (["--host", "no.such.host.invalid"], 1)):
            outcome = qwench("serve", fetched(SMOLLM2), *arguments, "-c", 512, timeout=60)
            self.assertEqual(outcome.code, code, outcome)
            self.assertEqual(len([line for line in outcome.err.splitlines() if not line.startswith("{")]), 1, outcome)

    def test_a_signal_while_loading_or_idle_ends_it_with_0(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Server("-c", 512, wait=None) as server:
                self.assertEqual(server.stop(number), 0)
