"""Real clients call tools through qwench serve, with a small real model; docs/compatibility.md lists them."""
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import compatibility
from serve_case import Server, ServeTestCase, events_of
from support import CODER, ROOT, SMOLLM2, TestCase, fetched, jsonl

try:
    import openai
except ImportError:
    openai = None
try:
    import langchain_openai
except ImportError:
    langchain_openai = None
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(ROOT, "build", "python-packages")
LLM = os.path.isdir(os.path.join(PACKAGES, "llm"))
NODE_PACKAGES = os.environ.get("QWENCH_NODE_PACKAGES") or os.path.join(ROOT, "build", "node-packages")
NODE = shutil.which("node") if os.path.isdir(os.path.join(NODE_PACKAGES, "node_modules", "openai")) else None

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the current weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "The city"}}, "required": ["city"]}}}
RESULT = '{"temperature": 31, "sky": "clear"}'
QUESTION = [{"role": "user", "content": "What is the weather in Paris today?"}]


def serving():
    """One server for all classes: they come one after the other."""
    if serving.server is None:
        serving.server = Server("-c", "2048", "--served-model-name", "coder", "--served-model-name", "qwench", model=fetched(CODER))
    return serving.server


serving.server = None


def tearDownModule():
    if serving.server is not None:
        code, log = serving.server.stop(), serving.server.raw_log()
        serving.server.__exit__()
        assert code == 0 and "Sanitizer" not in log, f"exit code {code}\n{log[-3000:]}"


class Case(ServeTestCase):
    ARGUMENTS = None

    @classmethod
    def setUpClass(cls):
        cls.server = serving()


def joined(chunks):
    """What a stream's chunks add up to, as the message of a whole answer has it."""
    message, calls, finish = {"content": ""}, [], None
    for chunk in chunks:
        for choice in chunk["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            finish = choice["finish_reason"] or finish
            for call in choice["delta"].get("tool_calls", ()):
                if call["index"] == len(calls):
                    assert set(call) == {"index", "id", "type", "function"} and set(call["function"]) == {"name", "arguments"}, call
                    calls.append({"type": call["type"], "function": dict(call["function"])})
                else:
                    assert call["index"] == len(calls) - 1 and set(call) == {"index", "function"}, call
                    calls[-1]["function"]["arguments"] += call["function"]["arguments"]
    if calls:
        message = {"content": message["content"] or None, "tool_calls": calls}
    return message, finish


class Tools(Case):
    def chat(self, messages=None, **fields):
        body = {"messages": messages or QUESTION, "tools": [WEATHER], "temperature": 0, "max_tokens": 60, **fields}
        status, _, answer = self.server.post("/v1/chat/completions", body, timeout=600)
        self.assertEqual(status, 200, answer)
        return answer if isinstance(answer, dict) else events_of(answer)

    def test_a_stream_joins_to_the_whole_call(self):
        choice = self.chat()["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls", choice)
        call, = choice["message"]["tool_calls"]
        self.assertIsNone(choice["message"]["content"])
        self.assertEqual(call["function"]["name"], "get_weather")
        self.assertIn("Paris", json.loads(call["function"]["arguments"])["city"])
        self.assertRegex(call["id"], "^call_[0-9a-f]{24}$")
        message, finish = joined(self.chat(stream=True))
        del call["id"]
        self.assertEqual(message["tool_calls"], [call])
        self.assertEqual(finish, "tool_calls")

    def test_a_cut_call_is_length_and_a_beginning_of_the_whole(self):
        whole = self.chat()["choices"][0]["message"]["tool_calls"][0]["function"]
        for most in (3, 12):
            cut = self.chat(max_tokens=most)["choices"][0]
            self.assertEqual(cut["finish_reason"], "length")
            for call in cut["message"].get("tool_calls", ()):
                self.assertEqual(call["function"]["name"], whole["name"])
                self.assertTrue(whole["arguments"].startswith(call["function"]["arguments"]), cut)
            message, finish = joined(self.chat(max_tokens=most, stream=True))
            self.assertEqual(finish, "length")
            self.assertEqual([c["function"] for c in message.get("tool_calls", ())],
                             [c["function"] for c in cut["message"].get("tool_calls", ())])

    def test_what_a_tool_said_reaches_the_model(self):
        call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}
        messages = QUESTION + [{"role": "assistant", "content": None, "tool_calls": [call]},
                               {"role": "tool", "tool_call_id": "call_1", "content": RESULT}]
        prompt = self.server.post("/apply-template", {"messages": messages, "tools": [WEATHER]})[2]["prompt"]
        self.assertIn('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', prompt)
        self.assertIn('<tool_response>\n{"temperature": 31, "sky": "clear"}\n</tool_response>', prompt)
        choice = self.chat(messages)["choices"][0]
        self.assertIn("31", choice["message"]["content"], choice)

    def test_with_none_the_model_is_not_shown_the_tools(self):
        with_none, without = (self.chat(tool_choice="none", max_tokens=4), self.chat(tools=None, max_tokens=4))
        self.assertEqual(with_none["usage"]["prompt_tokens"], without["usage"]["prompt_tokens"])
        self.assertNotIn("tool_calls", with_none["choices"][0]["message"])

    def test_a_demanded_call_keeps_to_the_schema(self):
        alarm = {"type": "function", "function": {"name": "set_alarm", "parameters": {
            "type": "object", "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}, "day": {"enum": ["today", "tomorrow"]}},
            "required": ["hour", "day"], "additionalProperties": False}}}
        named = {"type": "function", "function": {"name": "set_alarm"}}
        for choice, tools in ((named, [WEATHER, alarm]), ("required", [alarm])):
            fields = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False, "messages": [{"role": "user", "content": "Say hi."}]}
            answer = self.chat(**fields)["choices"][0]
            self.assertEqual(answer["finish_reason"], "tool_calls", answer)
            call, = answer["message"]["tool_calls"]
            self.assertEqual(call["function"]["name"], "set_alarm")
            arguments = json.loads(call["function"]["arguments"])
            self.assertEqual(set(arguments), {"hour", "day"})
            self.assertIn(arguments["hour"], range(24))
            self.assertIn(arguments["day"], ("today", "tomorrow"))
            message, finish = joined(self.chat(stream=True, **fields))
            self.assertEqual(message["tool_calls"][0]["function"], call["function"])
            self.assertEqual(finish, "tool_calls")

    def test_only_the_allowed_tools_are_called(self):
        alarm = {"type": "function", "function": {"name": "set_alarm", "parameters": {
            "type": "object", "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}}, "required": ["hour"], "additionalProperties": False}}}
        tools = [WEATHER, alarm]
        allow = lambda mode: {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [{"type": "function", "function": {"name": "set_alarm"}}]}}
        choice = self.chat(tools=tools, tool_choice=allow("required"), parallel_tool_calls=False)["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("tool_calls", None))
        self.assertEqual({call["function"]["name"] for call in choice["message"]["tool_calls"]}, {"set_alarm"})
        self.assertEqual(self.chat(tools=tools)["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "get_weather")
        message = self.chat(tools=tools, tool_choice=allow("auto"), max_tokens=60)["choices"][0]["message"]
        self.assertLessEqual({call["function"]["name"] for call in message.get("tool_calls", ())}, {"set_alarm"}, "the others are shown and not called")
        by_responses = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "set_alarm"}]}
        status, _, answer = self.server.post("/v1/responses", {"input": QUESTION, "tools": [{"type": "function", **tool["function"]} for tool in tools],
                                                               "tool_choice": by_responses, "parallel_tool_calls": False, "temperature": 0, "max_output_tokens": 60})
        self.assertEqual(status, 200, answer)
        self.assertEqual({item["name"] for item in answer["output"] if item["type"] == "function_call"}, {"set_alarm"})

    def test_what_is_wrong_is_named(self):
        for fields, param in (({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"), ({"tool_choice": "any"}, "tool_choice"),
                              ({"tools": None, "tool_choice": "required"}, "tool_choice"), ({"functions": [{}]}, "functions"),
                              ({"tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice.function.name"),
                              ({"messages": QUESTION + [{"role": "tool", "tool_call_id": "call_9", "content": "1"}]}, f"messages[{len(QUESTION)}].tool_call_id")):
            body = {"messages": QUESTION, "tools": [WEATHER], **fields}
            self.assert_error(self.server.post("/v1/chat/completions", body), 400, param)

    def test_a_template_without_tools_is_a_400(self):
        with Server("-c", "512", model=fetched(SMOLLM2)) as server:
            self.assert_error(server.post("/v1/chat/completions", {"messages": QUESTION, "tools": [WEATHER]}), 400, "tools", "chat template")

    def test_run_reads_calls_too(self):
        line = {"messages": QUESTION, "tools": [WEATHER], "temperature": 0, "max_tokens": 60}
        answer, without = jsonl("run", fetched(CODER), "-c", "2048", rows=[line, {**line, "tools": None, "max_tokens": 1}])
        call, = answer["tool_calls"]
        self.assertEqual(call["type"], "function")
        self.assertEqual(call["function"]["name"], "get_weather")
        self.assertIn("Paris", json.loads(call["function"]["arguments"])["city"])
        self.assertNotIn("tool_calls", without)


@unittest.skipIf(openai is None, "openai is not installed: ./dev test installs it")
class OpenAi(Case):
    def test_an_agents_round(self):
        client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0, timeout=600)
        settings = {"model": "coder", "temperature": 0, "max_completion_tokens": 60, "tools": [WEATHER], "parallel_tool_calls": False}
        answer = client.chat.completions.create(messages=QUESTION, tool_choice="auto", **settings)
        call, = answer.choices[0].message.tool_calls
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        with client.chat.completions.stream(messages=QUESTION, **settings) as stream:
            for _ in stream:
                pass
            streamed = stream.get_final_completion()
        self.assertEqual(streamed.choices[0].message.tool_calls[0].function.arguments, call.function.arguments)
        self.assertEqual(streamed.choices[0].finish_reason, "tool_calls")
        messages = QUESTION + [answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
        self.assertIn("31", client.chat.completions.create(messages=messages, **settings).choices[0].message.content)


@unittest.skipIf(langchain_openai is None, "langchain-openai is not installed: ./dev test installs it")
class LangChain(Case):
    def test_bind_tools(self):
        from langchain_core.messages import HumanMessage, ToolMessage
        from langchain_core.tools import tool

        @tool
        def get_weather(city: str) -> str:
            """Get the current weather of a city"""
            return RESULT

        chat = langchain_openai.ChatOpenAI(base_url=self.server.url + "/v1", api_key="none", model="coder", temperature=0,
                                           max_tokens=60, max_retries=0, timeout=600)
        agent = chat.bind_tools([get_weather])
        question = HumanMessage("What is the weather in Paris today?")
        answer = agent.invoke([question])
        call, = answer.tool_calls
        self.assertEqual(call["name"], "get_weather")
        streamed = None
        for chunk in agent.stream([question]):
            streamed = chunk if streamed is None else streamed + chunk
        self.assertEqual([(c["name"], c["args"]) for c in streamed.tool_calls], [(call["name"], call["args"])])
        last = agent.invoke([question, answer, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])])
        self.assertIn("31", last.content)

    def test_with_structured_output(self):
        from pydantic import BaseModel

        class River(BaseModel):
            """A river"""
            name: str
            kilometres: int

        chat = langchain_openai.ChatOpenAI(base_url=self.server.url + "/v1", api_key="none", model="coder", temperature=0,
                                           max_tokens=80, max_retries=0, timeout=600)
        for method in ("function_calling", "json_schema"):
            river = chat.with_structured_output(River, method=method).invoke("Name a river in Europe and its length.")
            self.assertIsInstance(river, River, method)


@unittest.skipIf(not LLM, "llm is not installed: ./dev test installs it")
class Llm(Case):
    def test_prompts_and_tools_by_its_configuration(self):
        with open(compatibility.PAGE, encoding="utf-8") as f:
            configuration = re.search(r"```yaml\n(.*?)```", f.read(), re.DOTALL)[1].replace("http://127.0.0.1:8080", self.server.url)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "extra-openai-models.yaml"), "w", encoding="utf-8") as f:
                f.write(configuration)
            environment = {**os.environ, "LLM_USER_PATH": folder, "PYTHONPATH": PACKAGES}

            def ask(*arguments):
                done = subprocess.run([sys.executable, "-m", "llm", "-m", "qwench", "-o", "temperature", "0", "-o", "max_tokens", "60",
                                       *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                      timeout=600, check=False)
                self.assertEqual(done.returncode, 0, done.stderr[-3000:])
                return done.stdout

            told = ask("Say hi.")
            self.assertTrue(told.strip())
            self.assertEqual(ask("--no-stream", "Say hi."), told)
            function = 'def get_weather(city: str) -> str:\n    "Get the current weather of a city"\n    return "{\\"temperature\\": 31, \\"sky\\": \\"clear\\"}"\n'
            self.assertIn("31", ask("--functions", function, QUESTION[0]["content"]))


@unittest.skipIf(NODE is None, "node and its openai package are not installed: ./dev test installs them")
class Node(Case):
    def test_calls_of_tools(self):
        done = subprocess.run([NODE, os.path.join(HERE, "openai_tools.mjs"), NODE_PACKAGES, self.server.url + "/v1",
                               json.dumps({"model": "coder", "messages": QUESTION, "tools": [WEATHER], "temperature": 0,
                                           "max_completion_tokens": 60})], capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(told["whole"]["name"], "get_weather")
        self.assertEqual(told["streamed"], told["whole"])
        self.assertEqual(told["finish"], "tool_calls")


@unittest.skipIf(shutil.which("curl") is None, "curl is not installed")
class Curl(Case):
    def test_every_line_of_the_documentation(self):
        with open(os.path.join(ROOT, "docs", "server.md"), encoding="utf-8") as f:
            commands = re.findall(r"^```\n(curl .*?)^```", f.read(), re.MULTILINE | re.DOTALL)
        self.assertGreater(len(commands), 0)
        for command in commands:
            command = command.replace("http://127.0.0.1:8080", self.server.url).replace("curl ", "curl -sS --fail-with-body ", 1)
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=600, check=False)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            self.assertIn('"', done.stdout)


class Table(TestCase):
    def test_is_what_the_tests_do(self):
        text, wanted = compatibility.page_with_table()
        self.assertEqual(text, wanted, "run python3 tests/e2e/compatibility.py --write")
        for name, _, _, test in compatibility.CLIENTS:
            module, case = test.split(".")
            self.assertTrue(any(each.startswith("test") for each in dir(getattr(importlib.import_module(module), case))), name)


if __name__ == "__main__":
    unittest.main()
