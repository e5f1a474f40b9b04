"""qwench serve with Qwen3's own template and vocabulary: reasoning beside everything that can be asked of an answer. The
weights are noise, so that an answer is any text; a bias opens and closes the block of reasoning."""
import json
import os
import random
import re
import shutil
import struct
import tempfile
import unittest

from serve_case import Server, ServeTestCase, events_of
from support import jsonl, tokenizer

HI = [{"role": "user", "content": "Hi there"}]
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"], "additionalProperties": False}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["a"], "additionalProperties": False}
ONE = b"\x80\x3f"  # 1 as bfloat16
HIDDEN, HEAD, INNER, VOCABULARY = 16, 8, 32, 151936


def noise(count, generator):
    """bfloat16 numbers of absolute values from 0.125 to 0.5."""
    data = bytearray(2 * count)
    data[0::2] = generator.randbytes(count)
    data[1::2] = generator.randbytes(count).translate(bytes(byte & 0x80 | 0x3E for byte in range(256)))
    return bytes(data)


def make_model(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(tokenizer("qwen3"), name), folder)
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": HIDDEN, "intermediate_size": INNER,
              "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": HEAD, "vocab_size": VOCABULARY,
              "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e4, "tie_word_embeddings": True, "hidden_act": "silu",
              "attention_bias": False, "torch_dtype": "bfloat16", "eos_token_id": 151645}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), layer + "self_attn.q_proj.weight": (2 * HEAD, HIDDEN),
              layer + "self_attn.k_proj.weight": (HEAD, HIDDEN), layer + "self_attn.v_proj.weight": (HEAD, HIDDEN),
              layer + "self_attn.o_proj.weight": (HIDDEN, 2 * HEAD), layer + "mlp.gate_proj.weight": (INNER, HIDDEN),
              layer + "mlp.up_proj.weight": (INNER, HIDDEN), layer + "mlp.down_proj.weight": (HIDDEN, INNER)}
    norms = {"model.norm.weight": HIDDEN, layer + "input_layernorm.weight": HIDDEN, layer + "post_attention_layernorm.weight": HIDDEN,
             layer + "self_attn.q_norm.weight": HEAD, layer + "self_attn.k_norm.weight": HEAD}
    generator = random.Random(7)
    tensors = {name: (shape, noise(shape[0] * shape[1], generator)) for name, shape in shapes.items()}
    tensors.update({name: ((size,), ONE * size) for name, size in norms.items()})
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


class Reasoning(ServeTestCase):
    ARGUMENTS = None
    OPEN, CLOSE = 151667, 151668  # the tokens <think> and </think>

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        make_model(cls.folder.name)
        cls.server = Server("-c", "1024", model=cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        try:
            code = cls.server.stop()
            assert code == 0 and "Sanitizer" not in cls.server.raw_log(), cls.server.raw_log()[-3000:]
        finally:
            cls.server.__exit__()
            cls.folder.cleanup()

    def ask(self, think=30, close=31, **fields):
        """(content, reasoning, calls, finish reason), of a whole answer, which the streamed one must equal."""
        body = {"messages": HI, "temperature": 1, "top_k": 0, "seed": 1, "max_tokens": 120,
                "logit_bias": {str(self.OPEN): think, str(self.CLOSE): close}, **fields}
        status, _, answer = self.server.post("/v1/chat/completions", body)
        self.assertEqual(status, 200, answer)
        choice = answer["choices"][0]
        message = choice["message"]
        calls = [[call["function"]["name"], call["function"]["arguments"]] for call in message.get("tool_calls", ())]
        whole = message["content"] or "", message.get("reasoning_content", ""), calls, choice["finish_reason"]
        content, reasoning, streamed, finish = "", "", [], None
        for event in events_of(self.server.post("/v1/chat/completions", {**body, "stream": True})[2]):
            part = event["choices"][0]
            content += part["delta"].get("content") or ""
            reasoning += part["delta"].get("reasoning_content") or ""
            for call in part["delta"].get("tool_calls", ()):
                if call["index"] == len(streamed):
                    streamed.append([call["function"]["name"], ""])
                streamed[-1][1] += call["function"]["arguments"]
            finish = part["finish_reason"] or finish
        self.assertEqual((content, reasoning, streamed, finish), whole)
        return whole

    def assert_form(self, form, content, calls):
        if "tools" in form:
            self.assertEqual(content, "")
            self.assertEqual([name for name, _ in calls], ["get_weather"])
            self.assertIn(json.loads(calls[0][1])["city"], ("Rome", "Oslo"))
        elif "guided_regex" in form:
            self.assertRegex(content, "^(?:yes|no)[0-9]{3}$")
        elif "guided_choice" in form:
            self.assertIn(content, form["guided_choice"])
        else:
            self.assertIn(json.loads(content)["a"], range(100))

    FORMS = ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, {"guided_regex": "(yes|no)[0-9]{3}"},
             {"guided_choice": ["<think>yes", "<think>no</think>"]}, {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False})

    def test_an_answer_of_a_form_follows_reasoning_or_comes_alone(self):
        for form in self.FORMS:
            for think, expected in ((30, True), (-100, False)):
                with self.subTest(form=form, think=think):
                    content, reasoning, calls, finish = self.ask(think, **form)
                    self.assertEqual(bool(reasoning), expected)
                    self.assertEqual(finish, "tool_calls" if calls else "stop")
                    self.assert_form(form, content, calls)
            with self.subTest(form=form, enable_thinking=False):
                content, reasoning, calls, _ = self.ask(chat_template_kwargs={"enable_thinking": False}, **form)
                self.assertEqual(reasoning, "")
                self.assert_form(form, content, calls)

    def test_a_limit_or_a_stop_string_inside_reasoning_leaves_no_answer(self):
        fields = {"messages": HI + [{"role": "assistant", "content": "<think>\nLet me"}], "continue_final_message": True, "max_tokens": 9}
        for form in ({}, *self.FORMS):
            with self.subTest(form=form):
                content, reasoning, calls, finish = self.ask(-100, -100, **fields, **form)
                self.assertEqual((content, calls, finish), ("", [], "length"))
                stop = re.sub(r"\s", "", reasoning)[1]
                content, cut, calls, finish = self.ask(-100, -100, stop=stop, **fields, **form)
                self.assertEqual((content, calls, finish), ("", [], "stop"))
                self.assertTrue(reasoning.startswith(cut) and stop not in cut, (reasoning, cut, stop))

    def test_an_open_block_of_reasoning_goes_on(self):
        for form in ({}, {"guided_regex": "(yes|no)[0-9]{3}"}):
            with self.subTest(form=form):
                messages = HI + [{"role": "assistant", "content": "<think>\nLet me"}]
                content, reasoning, _, _ = self.ask(-100, 11, messages=messages, continue_final_message=True, **form)
                self.assertNotEqual(reasoning, "")
                if form:
                    self.assert_form(form, content, [])
        messages = HI + [{"role": "assistant", "content": "My answer is"}]
        content, reasoning, _, _ = self.ask(30, -100, messages=messages, continue_final_message=True, max_tokens=5)
        self.assertEqual(reasoning, "", "what goes on with an answer is answer")
        self.assertTrue(content.startswith("<think>"), content)
        call = {"type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
        messages = HI + [{"role": "assistant", "content": None, "tool_calls": [call]}]
        body = {"messages": messages, "tools": [TOOL], "continue_final_message": True}
        self.assert_error(self.server.post("/v1/chat/completions", body), 400, "continue_final_message", "calls tools")

    def test_anthropic_says_its_own_fields(self):
        use = {"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Rome", "n": 123456789012345678901234567890}}
        body = {"max_tokens": 5, "messages": HI + [{"role": "assistant", "content": [use]}], "tools": [
            {"name": "get_weather", "input_schema": TOOL["function"]["parameters"]}]}
        status, _, answer = self.server.post("/v1/messages", body)
        self.assertEqual(status, 400, answer)
        self.assertTrue(answer["error"]["message"].startswith("messages: the last message calls tools"), answer)
        self.assertNotIn("continue_final_message", json.dumps(answer))
        body["messages"].append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "fine"}]})
        self.assertEqual(self.server.post("/v1/messages", body)[0], 200)

    def test_integers_of_any_length_reach_the_prompt(self):
        large = "123456789012345678901234567890"
        call = {"type": "function", "function": {"name": "f", "arguments": f'{{"n": {large}, "m": -18446744073709551617}}'}}
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"n": {"maximum": int(large)}}}}}
        messages = HI + [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": "7"}]
        prompt = self.server.post("/apply-template", {"messages": messages, "tools": [tool]})[2]["prompt"]
        self.assertIn(f'{{"n": {large}, "m": -18446744073709551617}}', prompt)
        self.assertIn(f'{{"maximum": {large}}}', prompt)

    def test_lines_hold_strict_tools_to_their_schemas(self):
        tool = {"type": "function", "function": {**TOOL["function"], "strict": True}}
        opening = self.server.post("/tokenize", {"prompt": "<tool_call>"})[2]["tokens"]
        self.assertEqual(len(opening), 1)
        row = {"messages": HI, "tools": [tool], "kwargs": {"enable_thinking": False}, "seed": 1, "max_tokens": 80,
               "logit_bias": {str(opening[0]): 60, "151645": -50}}
        answer, = jsonl("run", self.folder.name, "-c", "1024", rows=[row])
        self.assertGreaterEqual(len(answer["tool_calls"]), 1, answer)
        self.assertIn(json.loads(answer["tool_calls"][0]["function"]["arguments"])["city"], ("Rome", "Oslo"))


if __name__ == "__main__":
    unittest.main()
