#!/usr/bin/env python3
"""transformers with PyTorch on a checkpoint folder: see bench/compare.py for what is printed."""
import time

import torch
import transformers

from worker import Worker, main


class Transformers(Worker):
    name = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"

    def load(self, model, threads, cases):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype="auto").eval()

    def tokens(self, rows, count):
        return torch.randint(0, self.model.config.vocab_size, (rows, count))

    @torch.inference_mode()
    def prepare(self, case):
        self.cache = transformers.DynamicCache()
        for first in range(0, case.depth, 512):
            self.model(self.tokens(case.sequences, min(512, case.depth - first)), past_key_values=self.cache, use_cache=True,
                       logits_to_keep=1)

    def back(self, case):
        if case.depth == 0:
            self.cache = transformers.DynamicCache()
        elif (more := self.cache.get_seq_length() - case.depth) > 0:
            self.cache.crop(-more)

    @torch.inference_mode()
    def prefill(self, case):
        self.back(case)
        ids = self.tokens(1, case.tokens)
        begin = time.perf_counter()
        self.model(ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
        return time.perf_counter() - begin

    @torch.inference_mode()
    def generate(self, case):
        self.back(case)
        ids = self.tokens(case.sequences, 1)
        begin = time.perf_counter()
        for _ in range(case.tokens):
            logits = self.model(ids, past_key_values=self.cache, use_cache=True).logits
            ids = logits[:, -1:].argmax(-1)
        return time.perf_counter() - begin


main(Transformers())
