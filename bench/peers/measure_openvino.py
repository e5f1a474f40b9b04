#!/usr/bin/env python3
"""OpenVINO GenAI on a GGUF file (f16, q8_0, q4_0): see bench/compare.py for what is printed."""
import random
from importlib.metadata import version

import openvino_genai as api

from worker import Worker, main

WORDS = ("the of and to in is you that it he was for on are as with his they at be this have from or one had by word but not what "
         "all were we when your can said there use an each which she do how").split()


class OpenVino(Worker):
    name = f"OpenVINO GenAI {version('openvino-genai')}"

    def load(self, model, threads, cases):
        self.pipeline = api.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=threads)
        self.random = random.Random(1)

    def can(self, case):  # its pipeline runs one sequence, and begins with an empty cache
        return case.sequences == 1 and case.depth == 0

    def run(self, words, tokens):
        settings = api.GenerationConfig()
        settings.max_new_tokens, settings.ignore_eos, settings.do_sample = tokens, True, False
        settings.apply_chat_template = False
        # New words each time: it keeps the cache of a prompt that it has seen.
        text = " ".join(self.random.choice(WORDS) for _ in range(words))
        return self.pipeline.generate([text], settings).perf_metrics

    def prefill(self, case):
        metrics = self.run(case.tokens, 2)
        # About a token a word: the time of exactly case.tokens is wanted.
        return metrics.get_ttft().mean / 1e3 * case.tokens / metrics.get_num_input_tokens()

    def generate(self, case):
        return self.run(8, case.tokens + 1).get_tpot().mean / 1e3 * case.tokens


main(OpenVino())
