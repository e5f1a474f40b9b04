#!/usr/bin/env python3
"""llama.cpp (Python package llama-cpp-python) on a GGUF file: see bench/compare.py for what is printed."""
import ctypes
import random
import time

import llama_cpp as api
import numpy

from worker import Worker, main

UBATCH = 512


class Llama(Worker):
    name = f"llama.cpp (llama-cpp-python {api.__version__})"

    def load(self, model, threads, cases):
        self.quiet = api.llama_log_callback(lambda *_: None)  # kept: the library calls it until the end
        api.llama_log_set(self.quiet, ctypes.c_void_p(0))
        api.llama_backend_init()
        self.model = api.llama_model_load_from_file(model.encode(), api.llama_model_default_params())
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {model}")
        self.vocab = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))
        settings = api.llama_context_default_params()
        settings.n_ctx = max(case.sequences * (case.depth + case.tokens + 1) for case in cases) + 64
        settings.n_batch = settings.n_ubatch = UBATCH
        settings.n_seq_max = max(case.sequences for case in cases)
        settings.n_threads = settings.n_threads_batch = threads
        settings.kv_unified = True
        self.context = api.llama_init_from_model(self.model, settings)
        if not self.context:
            raise RuntimeError("llama.cpp cannot make a context of this size")
        self.memory = api.llama_get_memory(self.context)
        self.random = random.Random(1)

    def token(self):
        return self.random.randrange(self.vocab)

    def decode(self, rows):
        """rows: (token, position, sequence, whether its logits are wanted)"""
        batch = api.llama_batch_init(len(rows), 0, 1)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, position, 1, int(wanted)
            batch.seq_id[i][0] = sequence
        batch.n_tokens = len(rows)
        status = api.llama_decode(self.context, batch)
        api.llama_batch_free(batch)
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status}")
        api.llama_synchronize(self.context)

    def prompt(self, sequence, start, length, wanted):
        for first in range(start, start + length, UBATCH):
            end = min(first + UBATCH, start + length)
            self.decode([(self.token(), p, sequence, wanted and p == start + length - 1) for p in range(first, end)])

    def prepare(self, case):
        api.llama_memory_clear(self.memory, True)
        for sequence in range(case.sequences):
            self.prompt(sequence, 0, case.depth, False)

    def back(self, case):
        for sequence in range(case.sequences):
            api.llama_memory_seq_rm(self.memory, sequence, case.depth, -1)

    def prefill(self, case):
        self.back(case)
        begin = time.perf_counter()
        self.prompt(0, case.depth, case.tokens, True)
        return time.perf_counter() - begin

    def generate(self, case):
        self.back(case)
        tokens = [self.token() for _ in range(case.sequences)]
        begin = time.perf_counter()
        for step in range(case.tokens):
            self.decode([(tokens[s], case.depth + step, s, True) for s in range(case.sequences)])
            tokens = [int(numpy.argmax(numpy.ctypeslib.as_array(api.llama_get_logits_ith(self.context, s), (self.vocab,))))
                      for s in range(case.sequences)]
        return time.perf_counter() - begin


main(Llama())
