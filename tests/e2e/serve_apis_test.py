"""qwench serve: the APIs beside OpenAI's chat, by plain HTTP and by the clients that people have for them."""
import base64
import json
import math
import struct
import unittest
from datetime import datetime, timezone
from pathlib import Path

from serve_case import Server, ServeTestCase
from support import CODER, fetched

try:
    import openai
except ImportError:
    openai = None
try:
    import anthropic
except ImportError:
    anthropic = None
try:
    import ollama
except ImportError:
    ollama = None

INSTALLS = "the package is not installed: ./dev test installs it"
HI = [{"role": "user", "content": "Say hi."}]
WEATHER = {"name": "get_weather", "description": "Get the current weather of a city"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]}
QUESTION = {"role": "user", "content": "What is the weather in Paris today?"}


SUM = {"type": "object", "properties": {"sum": {"type": "integer", "minimum": 0, "maximum": 99}, "sure": {"type": "boolean"}}, "required": ["sum", "sure"], "additionalProperties": False}
ASKS_SUM = [{"role": "user", "content": "What is 2 + 3? Answer as JSON with sum and sure."}]


def length(vector):
    return math.sqrt(sum(x * x for x in vector))


class Api:
    KEY = {"Authorization": "Bearer secret"}

    def post(self, path, body, **headers):
        return self.server.post(path, body, headers={**self.KEY, **headers})

    def ok(self, path, body):
        status, _, answer = self.post(path, body)
        self.assertEqual(status, 200, answer)
        return answer

    def get(self, path):
        status, _, answer = self.server.get(path, headers=self.KEY)
        self.assertEqual(status, 200, answer)
        return answer

    def chat(self, **fields):
        return self.ok("/v1/chat/completions", {"messages": HI, "temperature": 0, **fields})["choices"][0]["message"]["content"]


class Structured(Api):
    """Answers of a form that is asked for, by each API, whole and streamed, beside tools and alone."""
    TOOL = {"type": "function", "function": {**WEATHER, "parameters": SCHEMA}}

    def assert_sum(self, text):
        answer = json.loads(text)
        self.assertEqual(sorted(answer), ["sum", "sure"])
        self.assertIn(answer["sum"], range(100))
        self.assertIsInstance(answer["sure"], bool)

    def streamed_chat(self, body):
        _, _, raw = self.post("/v1/chat/completions", {**body, "stream": True})
        content, calls, finish = "", {}, None
        for line in raw.decode().splitlines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                content += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls", []):
                    known = calls.setdefault(call["index"], ["", ""])
                    known[0] += call["function"].get("name", "")
                    known[1] += call["function"].get("arguments", "")
                finish = choice["finish_reason"] or finish
        return content, [calls[i] for i in sorted(calls)], finish

    def test_structured_chat_calls_a_tool_or_answers_in_the_form(self):
        schema = {"type": "json_schema", "json_schema": {"name": "sum", "schema": SUM, "strict": True}}
        made = set()
        tag = self.ok("/tokenize", {"prompt": "<tool_call>"})["tokens"]
        self.assertEqual(len(tag), 1)
        # A model of this size often forgets the tag, and with it its wish to call: the bias is for that.
        for messages, bias in (([QUESTION], 50), (ASKS_SUM, -50)):
            for form in (schema, {"type": "json_object"}):
                body = {"messages": messages, "tools": [self.TOOL], "response_format": form, "temperature": 0, "max_tokens": 100,
                        "parallel_tool_calls": False, "logit_bias": {str(tag[0]): bias}}
                choice = self.ok("/v1/chat/completions", body)["choices"][0]
                calls = [[call["function"]["name"], call["function"]["arguments"]] for call in choice["message"].get("tool_calls", [])]
                made.add(choice["finish_reason"])
                if calls:
                    self.assertEqual(choice["finish_reason"], "tool_calls")
                    self.assertIsNone(choice["message"]["content"])
                    for name, arguments in calls:
                        self.assertEqual(name, "get_weather")
                        self.assertIsInstance(json.loads(arguments), dict)
                elif form is schema:
                    self.assert_sum(choice["message"]["content"])
                else:
                    self.assertIsInstance(json.loads(choice["message"]["content"]), dict)
                self.assertEqual(self.streamed_chat(body), (choice["message"]["content"] or "", calls, choice["finish_reason"]))
        self.assertEqual(made, {"tool_calls", "stop"}, "both were made")

    def test_structured_chat_with_a_demanded_call_has_no_text(self):
        body = {"messages": ASKS_SUM, "tools": [self.TOOL], "tool_choice": "required", "temperature": 0, "max_tokens": 100, "response_format": {"type": "json_object"}}
        message = self.ok("/v1/chat/completions", body)["choices"][0]["message"]
        self.assertIsNone(message["content"])
        self.assertEqual(message["tool_calls"][0]["function"]["name"], "get_weather")
        bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}}
        self.assert_error(self.post("/v1/chat/completions", {**body, "response_format": bad}), 400, None, "the JSON schema: #: type")

    def test_structured_anthropic(self):
        for fields in ({"output_config": {"format": {"type": "json_schema", "schema": SUM}}}, {"output_format": {"type": "json_schema", "schema": SUM}},
                       {"output_config": {"format": {"type": "json_schema", "schema": SUM}, "effort": "low"}, "tools": [{**WEATHER, "input_schema": SCHEMA}]}):
            body = {"messages": ASKS_SUM, "max_tokens": 60, "temperature": 0, **fields}
            answer = self.ok("/v1/messages", body)
            self.assertEqual(answer["stop_reason"], "end_turn")
            self.assert_sum(answer["content"][0]["text"])
            _, _, raw = self.post("/v1/messages", {**body, "stream": True})
            events = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: ")]
            self.assertEqual("".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta"), answer["content"][0]["text"])
        both = {"messages": HI, "max_tokens": 1, "output_format": {"type": "json_schema", "schema": SUM}, "output_config": {"format": {"type": "json_schema", "schema": SUM}}}
        self.assertEqual(self.post("/v1/messages", both)[0], 400)

    def test_structured_responses(self):
        for form, tools in (({"type": "json_schema", "name": "sum", "schema": SUM, "strict": True}, []), ({"type": "json_object"}, []),
                            ({"type": "json_schema", "name": "sum", "schema": SUM}, [{"type": "function", **WEATHER, "parameters": SCHEMA}])):
            body = {"input": ASKS_SUM, "max_output_tokens": 60, "temperature": 0, "text": {"format": form}, "tools": tools}
            answer = self.ok("/v1/responses", body)
            self.assertEqual((answer["status"], answer["text"]["format"]), ("completed", form))
            text = answer["output"][0]["content"][0]["text"]
            if form["type"] == "json_schema":
                self.assert_sum(text)
            else:
                self.assertIsInstance(json.loads(text), dict)
            _, _, raw = self.post("/v1/responses", {**body, "stream": True})
            events = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: ")]
            self.assertEqual("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"), text)

    def test_structured_ollama(self):
        options = {"temperature": 0, "num_predict": 60}
        chat = {"messages": ASKS_SUM, "options": options, "stream": False}
        self.assert_sum(self.ok("/api/chat", {**chat, "format": SUM})["message"]["content"])
        self.assert_sum(self.ok("/api/chat", {**chat, "format": SUM, "tools": [self.TOOL]})["message"]["content"])
        self.assertIsInstance(json.loads(self.ok("/api/chat", {**chat, "format": "json"})["message"]["content"]), dict)
        generate = {"prompt": ASKS_SUM[0]["content"], "options": options, "stream": False}
        whole = self.ok("/api/generate", {**generate, "format": SUM})["response"]
        self.assert_sum(whole)
        self.assert_sum(self.ok("/api/generate", {**generate, "format": SUM, "raw": True})["response"])
        _, _, lines = self.post("/api/generate", {**generate, "format": SUM, "stream": True})
        self.assertEqual("".join(json.loads(line)["response"] for line in lines.decode().splitlines()), whole)
        self.assertEqual(self.post("/api/chat", {**chat, "format": "xml"})[0], 400)

    @unittest.skipIf(anthropic is None, INSTALLS)
    def test_structured_the_client_of_anthropic(self):
        client = anthropic.Anthropic(base_url=self.server.url, api_key="secret", max_retries=0)
        answer = client.messages.create(model="small", max_tokens=60, messages=ASKS_SUM,
                                        extra_body={"temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": SUM}}})
        self.assert_sum(answer.content[0].text)


class Embeddings(Api):
    def embed(self, **fields):
        return self.ok("/v1/embeddings", fields)

    def vectors(self, **fields):
        return [entry["embedding"] for entry in self.embed(**fields)["data"]]

    def test_embeddings_vectors_have_length_one_and_follow_the_order_of_the_inputs(self):
        texts = ["The sky is blue.", "Rain falls.", "The sky was blue."]
        answer = self.embed(input=texts)
        self.assertEqual([entry["index"] for entry in answer["data"]], [0, 1, 2])
        vectors = [entry["embedding"] for entry in answer["data"]]
        for text, vector in zip(texts, vectors):
            self.assertAlmostEqual(length(vector), 1, places=5)
            self.assertEqual(self.vectors(input=text), [vector], "alone or in a batch")
        like = sum(a * b for a, b in zip(vectors[0], vectors[2]))
        unlike = sum(a * b for a, b in zip(vectors[0], vectors[1]))
        self.assertGreater(like, unlike)
        counts = [self.ok("/tokenize", {"prompt": text})["count"] for text in texts]
        self.assertEqual(answer["usage"], {"prompt_tokens": sum(counts), "total_tokens": sum(counts)})

    def test_embeddings_ids_base64_dimensions_and_pooling(self):
        ids = self.ok("/tokenize", {"prompt": "The sky is blue."})["tokens"]
        whole = self.vectors(input="The sky is blue.")[0]
        self.assertEqual(self.vectors(input=ids), [whole])
        self.assertEqual(self.vectors(input=[ids, ids]), [whole, whole])
        encoded = self.vectors(input=ids, encoding_format="base64")[0]
        self.assertEqual(list(struct.unpack(f"<{len(whole)}f", base64.b64decode(encoded))), [struct.unpack("<f", struct.pack("<f", x))[0] for x in whole])
        cut = self.vectors(input=ids, dimensions=8)[0]
        scale = length(whole[:8])
        for got, want in zip(cut, whole):
            self.assertAlmostEqual(got, want / scale, places=5)
        self.assertEqual(len(cut), 8)
        self.assertNotEqual(self.vectors(input=ids, pooling="last")[0], whole)
        self.assertEqual(self.vectors(input=ids, pooling="mean")[0], whole)

    def test_embeddings_what_cannot_be_embedded_is_a_400(self):
        for fields, param, says in (({"input": ""}, "input", "empty"), ({"input": ["x", ""]}, "input[1]", "empty"), ({"input": "x " * 2000}, None, "context"),
                                    ({"input": "x", "dimensions": 100000}, "dimensions", "elements"),
                                    ({"input": "x", "pooling": "cls"}, "pooling", "mean"),
                                    ({"input": [0, 10**9]}, None, "vocabulary"), ({"input": "x", "n": 1}, "n", "not known")):
            self.assert_error(self.post("/v1/embeddings", fields), 400, param, says)

    @unittest.skipIf(openai is None, INSTALLS)
    def test_embeddings_the_client_of_openai(self):
        client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="secret", max_retries=0)
        answer = client.embeddings.create(model="small", input=["The sky is blue.", "Rain falls."])  # asks for base64
        self.assertEqual(len(answer.data), 2)
        for got, want in zip(answer.data[0].embedding, self.vectors(input="The sky is blue.")[0]):
            self.assertAlmostEqual(got, want, places=6)
        short = client.embeddings.create(model="small", input="Rain falls.", dimensions=16, encoding_format="float")
        self.assertEqual(len(short.data[0].embedding), 16)

    @unittest.skipIf(ollama is None, INSTALLS)
    def test_embeddings_the_client_of_ollama(self):
        client = ollama.Client(host=self.server.url, headers=self.KEY)
        answer = client.embed(model="small", input=["The sky is blue.", "Rain falls."])
        self.assertEqual([list(vector) for vector in answer.embeddings], self.vectors(input=["The sky is blue.", "Rain falls."]))
        self.assertGreater(answer.prompt_eval_count, 0)


class Anthropic(Api):
    def message(self, **fields):
        return self.ok("/v1/messages", {"messages": HI, "max_tokens": 12, "temperature": 0, **fields})

    def test_anthropic_the_answer_is_the_chats(self):
        answer = self.message()
        self.assertEqual(answer["content"], [{"type": "text", "text": self.chat(max_tokens=12)}])
        self.assertEqual(answer["type"], "message")
        self.assertEqual(answer["model"], "small")
        self.assertEqual(self.message(max_tokens=2)["stop_reason"], "max_tokens")
        usage = answer["usage"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], self.ok("/v1/messages/count_tokens", {"messages": HI})["input_tokens"])

    def test_anthropic_an_open_answer_goes_on(self):
        open_turn = HI + [{"role": "assistant", "content": "Hello, my name"}]
        self.assertEqual(self.message(messages=open_turn)["content"][0]["text"], self.chat(messages=open_turn, max_tokens=12, continue_final_message=True))

    def test_anthropic_keys_and_errors_have_its_shape(self):
        status, _, body = self.server.post("/v1/messages", {"messages": HI, "max_tokens": 1}, headers={"x-api-key": "secret"})
        self.assertEqual(status, 200, body)
        for answer, status, kind in ((self.server.post("/v1/messages", {"messages": HI, "max_tokens": 1}), 401, "authentication_error"),
                                     (self.post("/v1/messages", {"messages": HI}), 400, "invalid_request_error"),
                                     (self.post("/v1/messages", {"messages": HI, "max_tokens": 1, "model": "other"}), 404, "not_found_error"),
                                     (self.post("/v1/messages", "{"), 400, "invalid_request_error"),
                                     (self.server.get("/v1/messages", headers=self.KEY), 405, "invalid_request_error")):
            self.assertEqual(answer[0], status, answer[2])
            self.assertEqual(answer[2]["type"], "error")
            self.assertEqual(answer[2]["error"]["type"], kind)
            self.assertTrue(answer[2]["error"]["message"])

    @unittest.skipIf(anthropic is None, INSTALLS)
    def test_anthropic_its_client(self):
        client = anthropic.Anthropic(base_url=self.server.url, api_key="secret", max_retries=0)
        answer = client.messages.create(model="small", max_tokens=12, messages=HI, system="Be brief.", extra_body={"temperature": 0})
        self.assertEqual(answer.content[0].type, "text")
        text = answer.content[0].text
        with client.messages.stream(model="small", max_tokens=12, messages=HI, system="Be brief.", extra_body={"temperature": 0}) as stream:
            pieces = list(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual("".join(pieces), text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, answer.stop_reason)
        self.assertEqual(final.usage.output_tokens, answer.usage.output_tokens)
        self.assertEqual(client.messages.count_tokens(model="small", messages=HI, system="Be brief.").input_tokens,
                         final.usage.input_tokens + final.usage.cache_read_input_tokens)
        stop = text[3:6]
        cut = client.messages.create(model="small", max_tokens=12, messages=HI, system="Be brief.", stop_sequences=[stop], extra_body={"temperature": 0})
        self.assertEqual((cut.stop_reason, cut.stop_sequence), ("stop_sequence", stop))
        self.assertEqual(cut.content[0].text, text[:text.index(stop)])
        with self.assertRaises(anthropic.BadRequestError):
            client.messages.create(model="small", max_tokens=0, messages=HI)
        with self.assertRaises(anthropic.AuthenticationError):
            anthropic.Anthropic(base_url=self.server.url, api_key="wrong", max_retries=0).messages.create(model="small", max_tokens=1, messages=HI)


    @unittest.skipIf(anthropic is None, INSTALLS)
    def test_anthropic_its_client_calls_tools(self):
        client = anthropic.Anthropic(base_url=self.server.url, api_key="secret", max_retries=0)
        asked = {"model": "small", "max_tokens": 100, "extra_body": {"temperature": 0}, "tools": [{**WEATHER, "input_schema": SCHEMA}]}
        answer = client.messages.create(messages=[QUESTION], **asked)
        self.assertEqual(answer.stop_reason, "tool_use", answer)
        call = [block for block in answer.content if block.type == "tool_use"][0]
        self.assertEqual((call.name, call.input), ("get_weather", {"city": "Paris"}))
        with client.messages.stream(messages=[QUESTION], **asked) as stream:
            final = stream.get_final_message()
        self.assertEqual(final.content[-1].input, call.input)
        self.assertEqual(final.stop_reason, "tool_use")
        told = client.messages.create(messages=[QUESTION, {"role": "assistant", "content": answer.content},
                                                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"}]}], **{**asked, "max_tokens": 1})
        self.assertGreater(told.usage.input_tokens + told.usage.cache_read_input_tokens, answer.usage.input_tokens + answer.usage.cache_read_input_tokens)


class Responses(Api):
    def test_responses_the_answer_is_the_chats(self):
        answer = self.ok("/v1/responses", {"input": "Say hi.", "temperature": 0, "max_output_tokens": 12})
        self.assertEqual(answer["output"][0]["content"][0]["text"], self.chat(max_tokens=12))
        self.assertEqual(answer["status"], "incomplete" if answer["usage"]["output_tokens"] == 12 else "completed")
        self.assert_error(self.post("/v1/responses", {"input": "Hi", "previous_response_id": "resp_1"}), 400, "previous_response_id", "stored")

    @unittest.skipIf(openai is None, INSTALLS)
    def test_responses_the_client_of_openai(self):
        client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="secret", max_retries=0)
        answer = client.responses.create(model="small", input="Say hi.", temperature=0, max_output_tokens=12, instructions="Be brief.")
        self.assertTrue(answer.output_text)
        events = list(client.responses.create(model="small", input="Say hi.", temperature=0, max_output_tokens=12, instructions="Be brief.", stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"), answer.output_text)
        self.assertEqual(events[-1].response.output_text, answer.output_text)
        with client.responses.stream(model="small", input="Say hi.", temperature=0, max_output_tokens=12, instructions="Be brief.") as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_response().output_text, answer.output_text)
        again = client.responses.create(model="small", temperature=0, max_output_tokens=4,
                                        input=[{"role": "user", "content": "Say hi."}, *answer.output, {"role": "user", "content": "And again."}])
        self.assertGreater(again.usage.input_tokens, answer.usage.input_tokens)


    @unittest.skipIf(openai is None, INSTALLS)
    def test_responses_the_client_of_openai_calls_functions(self):
        client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="secret", max_retries=0)
        asked = {"model": "small", "temperature": 0, "max_output_tokens": 100, "tools": [{"type": "function", **WEATHER, "parameters": SCHEMA}]}
        answer = client.responses.create(input=[QUESTION], **asked)
        call = [item for item in answer.output if item.type == "function_call"][0]
        self.assertEqual((call.name, json.loads(call.arguments)), ("get_weather", {"city": "Paris"}))
        events = list(client.responses.create(input=[QUESTION], stream=True, **asked))
        self.assertEqual("".join(e.delta for e in events if e.type == "response.function_call_arguments.delta"), call.arguments)
        told = client.responses.create(input=[QUESTION, *answer.output, {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}], **{**asked, "max_output_tokens": 4})
        self.assertGreater(told.usage.input_tokens, answer.usage.input_tokens)


class Ollama(Api):
    OPTIONS = {"temperature": 0, "num_predict": 12}

    def lines(self, path, body):
        status, headers, text = self.post(path, body)
        self.assertEqual(status, 200, text)
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        return [json.loads(line) for line in text.decode().splitlines()]

    def test_ollama_answers_are_the_chats(self):
        text = self.chat(max_tokens=12)
        whole = self.ok("/api/chat", {"model": "small:latest", "messages": HI, "options": self.OPTIONS, "stream": False})
        self.assertEqual(whole["message"]["content"], text)
        lines = self.lines("/api/chat", {"messages": HI, "options": self.OPTIONS})
        self.assertEqual("".join(line["message"]["content"] for line in lines), text)
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        self.assertEqual(lines[-1]["done_reason"], whole["done_reason"])
        generated = self.lines("/api/generate", {"prompt": "Say hi.", "options": self.OPTIONS})
        self.assertEqual("".join(line["response"] for line in generated), text)
        for name in ("total_duration", "prompt_eval_count", "eval_count", "eval_duration", "prompt_eval_duration"):
            self.assertGreater(generated[-1][name], 0)
        raw = self.ok("/api/generate", {"prompt": "Once upon a time", "raw": True, "stream": False, "options": self.OPTIONS})
        completion = self.ok("/v1/completions", {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 12})
        self.assertEqual(raw["response"], completion["choices"][0]["text"])
        self.assertEqual(self.ok("/api/generate", {"model": "small"})["done_reason"], "load")

    def test_ollama_errors_are_sentences(self):
        for answer, status, says in ((self.post("/api/chat", {"messages": HI, "model": "other"}), 404, "small"),
                                     (self.post("/api/chat", {"messages": HI, "options": {"mirostat": 2}}), 400, "options.mirostat"),
                                     (self.post("/api/generate", {"prompt": "x", "template": "y"}), 400, "template"),
                                     (self.post("/api/nothing", {}), 404, "/api/chat"),
                                     (self.server.post("/api/chat", {"messages": HI}), 401, "key")):
            self.assertEqual(answer[0], status, answer[2])
            self.assertEqual(list(answer[2]), ["error"])
            self.assertIn(says, answer[2]["error"])

    def test_ollama_pages(self):
        file = Path(fetched(CODER)).stat()
        written = datetime.fromtimestamp(int(file.st_mtime), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        tags, shown = self.get("/api/tags")["models"], self.ok("/api/show", {"model": "small"})
        self.assertEqual([model["name"] for model in tags], ["small"])
        self.assertEqual((tags[0]["size"], tags[0]["modified_at"], shown["modified_at"]), (file.st_size, written, written))
        for details in (tags[0]["details"], shown["details"]):
            self.assertEqual({field: details[field] for field in ("format", "family", "quantization_level")},
                             {"format": "gguf", "family": "qwen2", "quantization_level": "Q4_K_M"})
            self.assertRegex(details["parameter_size"], r"^[0-9]{3}\.[0-9]{2}M$")
        self.assertEqual([model["model"] for model in self.get("/api/ps")["models"]], ["small"])
        self.assertTrue(self.get("/api/version")["version"])
        self.assertIn("completion", self.ok("/api/show", {"model": "small"})["capabilities"])
        self.assertEqual(self.post("/api/show", {"model": "other"})[0], 404)
        self.assertEqual(self.post("/api/show", {})[0], 400)

    @unittest.skipIf(ollama is None, INSTALLS)
    def test_ollama_its_client(self):
        client = ollama.Client(host=self.server.url, headers=self.KEY)
        answer = client.chat(model="small", messages=HI, options=self.OPTIONS)
        self.assertEqual(answer.message.content, self.chat(max_tokens=12))
        pieces = list(client.chat(model="small", messages=HI, options=self.OPTIONS, stream=True))
        self.assertEqual("".join(piece.message.content for piece in pieces), answer.message.content)
        self.assertEqual(pieces[-1].eval_count, answer.eval_count)
        self.assertEqual(client.generate(model="small", prompt="Say hi.", options=self.OPTIONS).response, answer.message.content)
        pieces = list(client.generate(model="small", prompt="Say hi.", options=self.OPTIONS, stream=True))
        self.assertEqual("".join(piece.response for piece in pieces), answer.message.content)
        self.assertEqual(client.list().models[0].model, "small")
        self.assertEqual(client.ps().models[0].model, "small")
        self.assertIn("completion", client.show("small").capabilities)
        with self.assertRaises(ollama.ResponseError) as caught:
            client.chat(model="other", messages=HI)
        self.assertEqual(caught.exception.status_code, 404)


    @unittest.skipIf(ollama is None, INSTALLS)
    def test_ollama_its_client_calls_tools(self):
        client = ollama.Client(host=self.server.url, headers=self.KEY)
        asked = {"model": "small", "tools": [{"type": "function", "function": {**WEATHER, "parameters": SCHEMA}}], "options": {"temperature": 0, "num_predict": 100}}
        answer = client.chat(messages=[QUESTION], **asked)
        call = answer.message.tool_calls[0].function
        self.assertEqual((call.name, call.arguments), ("get_weather", {"city": "Paris"}))
        pieces = list(client.chat(messages=[QUESTION], stream=True, **asked))
        self.assertEqual([c.function.arguments for p in pieces for c in p.message.tool_calls or ()], [call.arguments])
        told = client.chat(messages=[QUESTION, answer.message, {"role": "tool", "tool_name": "get_weather", "content": "21 degrees"}], **{**asked, "options": {"temperature": 0, "num_predict": 1}})
        self.assertGreater(told.prompt_eval_count, answer.prompt_eval_count)


class Apis(Structured, Embeddings, Anthropic, Responses, Ollama, ServeTestCase):
    """One server for all of them."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("-c", "1024", "--api-key", "secret", "--served-model-name", "small", model=fetched(CODER))

if __name__ == "__main__":
    unittest.main()
