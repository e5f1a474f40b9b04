#!/usr/bin/env python3
"""Record what the official implementation computes, for `qwench verify --reference` (the format: docs/verify.md).

Needs the packages transformers, torch and safetensors. Everything is computed in float32 on the weights as they are
stored, with eager attention, on the CPU.

    tools/record_reference.py ~/models/Qwen3-0.6B qwen3.json
    tools/record_reference.py ~/models/Qwen3-0.6B qwen3.json --prompt "Why is the sky blue?" --text chapter.txt --time
"""
import argparse
import json
import os
import platform
import sys
import time

FORMAT = 1
PROMPTS = ["The capital of France is", "def fibonacci(n):\n    \"\"\"The n-th Fibonacci number.\"\"\"\n",
           "床前明月光，疑是地上霜。", "Q: What is 17 + 25?\nA:"]
TEXT = ("The sea was calm that morning, and the fishermen had already pulled their boats onto the sand. Nobody spoke of the "
        "storm; it had come and gone like a guest who leaves before breakfast. Only the broken mast remembered it.")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a checkpoint folder, or a .gguf file that transformers can read")
    parser.add_argument("out", help="the JSON file to write; the tensors go beside it, as .safetensors")
    parser.add_argument("--prompt", action="append", metavar="TEXT", help="may be repeated; a few short ones when absent")
    parser.add_argument("--ids", action="append", metavar="ID,...", help="a prompt as token ids; may be repeated")
    parser.add_argument("--text", metavar="FILE", help="what perplexity is measured on; a short paragraph when absent")
    parser.add_argument("--steps", type=int, default=32, help="greedy tokens after each prompt (32)")
    parser.add_argument("--states", type=int, default=2, help="prompts whose hidden states are kept, from the first (2)")
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens of a prompt and of the text at most (512)")
    parser.add_argument("--time", action="store_true", help="measure the speed with and without KV cache too")
    parser.add_argument("--time-tokens", type=int, default=32, help="new tokens of that measurement (32)")
    options = parser.parse_args()
    for name in ("steps", "states"):
        if getattr(options, name) < 0:
            parser.error(f"--{name}: expected 0 or more")
    if options.max_tokens < 2 or options.time_tokens < 1:
        parser.error("--max-tokens must be 2 or more and --time-tokens 1 or more")
    if not options.out.endswith(".json"):
        parser.error("OUT must end in .json")
    return options


class Recorder:
    """One loaded model, and what is recorded of it."""

    def __init__(self, path):
        import torch
        import transformers
        self.torch = torch
        self.versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
        given = {"gguf_file": os.path.basename(path)} if path.endswith(".gguf") else {}
        folder = os.path.dirname(path) or "." if given else path
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", **given).eval()
        self.vocab = self.model.config.get_text_config().vocab_size
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
        except (OSError, ValueError, KeyError):
            self.tokenizer = None
        self.tensors = {}

    def encode(self, text):
        if self.tokenizer is None:
            sys.exit("this model has no tokenizer: give prompts by --ids")
        return self.tokenizer(text)["input_ids"]

    def forward(self, ids, **more):
        with self.torch.inference_mode():
            return self.model(input_ids=self.torch.tensor([ids]), **more)

    def keep(self, name, tensor):
        self.tensors[name] = tensor.detach().to(self.torch.float32).cpu().contiguous().clone()

    def prompt(self, index, ids, steps, states):
        """The logits of all positions, the states between layers, and the greedy continuation."""
        norms = []
        hook = self.model.get_decoder().norm.register_forward_hook(
            lambda _module, given, result: norms.append((given[0], result)))
        try:
            out = self.forward(ids, use_cache=False, output_hidden_states=states)
        finally:
            hook.remove()
        self.keep(f"p{index}.logits", out.logits[0])
        if states:
            # The last of transformers' hidden_states is after the final norm: what enters it is the layer's output.
            layers = [*out.hidden_states[:-1], norms[0][0]]
            for n, state in enumerate(layers):
                self.keep(f"p{index}.hidden.{n}", state[0])
            self.keep(f"p{index}.hidden.norm", norms[0][1][0])
        greedy, margins = self.continuation(ids, steps)
        return {"ids": list(ids), "greedy": greedy, "greedy_margins": margins}

    def continuation(self, ids, steps):
        chosen, margins, cache, given = [], [], None, ids
        for _ in range(steps):
            out = self.forward(given, past_key_values=cache, use_cache=True)
            best = out.logits[0, -1].topk(2)
            chosen.append(int(best.indices[0]))
            margins.append(float(best.values[0] - best.values[1]))
            cache, given = out.past_key_values, chosen[-1:]
        return chosen, margins

    def perplexity(self, ids):
        logits = self.forward(ids, use_cache=False).logits[0].double()
        log_p = logits.log_softmax(-1)[:-1]
        nll = (-log_p.gather(1, self.torch.tensor(ids[1:])[:, None])[:, 0]).tolist()
        return {"ids": list(ids), "nll": nll, "mean_nll": sum(nll) / len(nll)}

    def timings(self, prompt, ids, new_tokens):
        self.forward(ids, use_cache=False)
        begin = time.perf_counter()
        self.forward(ids, use_cache=True)
        prefill = time.perf_counter() - begin
        begin = time.perf_counter()
        chosen, _ = self.continuation(ids, new_tokens)
        with_cache = time.perf_counter() - begin
        begin = time.perf_counter()
        for n in range(new_tokens):
            int(self.forward([*ids, *chosen[:n]], use_cache=False).logits[0, -1].argmax())
        without_cache = time.perf_counter() - begin
        return {"device": f"{processor()}, {self.torch.get_num_threads()} threads, torch {self.versions['torch']}, float32",
                "prompt": prompt, "new_tokens": new_tokens, "prefill_seconds": prefill,
                "with_cache_seconds": with_cache, "without_cache_seconds": without_cache}


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main():
    options = arguments()
    try:
        from safetensors.torch import save_file
        recorder = Recorder(options.model)
    except ImportError as error:
        sys.exit(f"{error}: install transformers, torch and safetensors, e.g. with pip")
    prompts = [[int(token) for token in text.replace(",", " ").split()] for text in options.ids or []]
    texts = options.prompt or ([] if prompts else PROMPTS)
    prompts += [recorder.encode(text) for text in texts]
    prompts = [ids[:options.max_tokens] for ids in prompts]
    for ids in prompts:
        if not ids or not all(0 <= token < recorder.vocab for token in ids):
            sys.exit(f"a prompt is empty, or has an id outside 0 to {recorder.vocab - 1}: {ids[:20]}")
    recorded = {"format": FORMAT, "model": os.path.basename(os.path.normpath(options.model)),
                "compute": "float32 arithmetic on the stored weights, eager attention, CPU",
                "made_with": recorder.versions,
                "prompts": [recorder.prompt(n, ids, options.steps, n < options.states) for n, ids in enumerate(prompts)]}
    if options.text:
        with open(options.text, encoding="utf-8") as f:
            text = recorder.encode(f.read())
    else:
        text = recorder.encode(TEXT) if recorder.tokenizer is not None else []
        if len(text) < 2:  # a tokenizer without a vocabulary
            text = max(prompts, key=len)
    if len(text) > 1:
        recorded["perplexity"] = recorder.perplexity(text[:options.max_tokens])
    if options.time:
        recorded["timings"] = recorder.timings(0, prompts[0], options.time_tokens)
    save_file(recorder.tensors, options.out.removesuffix(".json") + ".safetensors", metadata={"format": "golden-1"})
    with open(options.out, "w", encoding="utf-8") as f:
        json.dump(recorded, f)
        f.write("\n")
    print(f"{options.out}: {len(prompts)} prompts, {len(recorder.tensors)} tensors")


if __name__ == "__main__":
    main()
