"""The tokenizer.json and tokenizer_config.json of two models, rebuilt from the metadata of their GGUF files.

The GGUF holds the vocabulary, the merges and the chat template; the rest (normalizer, pre-tokenizer, flags of the
added tokens) is what the authors' own files say.
"""
import json

CONTROL, USER_DEFINED, NORMAL = 3, 4, 1


def to_json(value):
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def qwen25(metadata, qwen3_tokenizer, qwen3_config):
    """Qwen2.5's pipeline, merges and flags are Qwen3's; it has fewer added tokens and its own template."""
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    flags = {token["content"]: token for token in qwen3_tokenizer["added_tokens"]}
    added = [flags[text] for text, kind in zip(tokens, kinds) if kind in (CONTROL, USER_DEFINED)]
    tokenizer = {key: value for key, value in qwen3_tokenizer.items() if key != "model"}
    tokenizer["added_tokens"] = added
    model = {key: value for key, value in qwen3_tokenizer["model"].items()
             if key not in ("vocab", "merges", "ignore_merges")}
    model["vocab"] = {text: i for i, (text, kind) in enumerate(zip(tokens, kinds)) if kind == NORMAL}
    model["merges"] = metadata["tokenizer.ggml.merges"]
    tokenizer["model"] = model
    last = max(token["id"] for token in added)
    config = dict(qwen3_config)
    config["added_tokens_decoder"] = {key: value for key, value in config["added_tokens_decoder"].items()
                                      if int(key) <= last}
    config["chat_template"] = metadata["tokenizer.chat_template"]
    config["model_max_length"] = 32768
    return {"tokenizer.json": to_json(tokenizer), "tokenizer_config.json": to_json(config)}


def smollm2(metadata):
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    added = [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": True}
             for i, (text, kind) in enumerate(zip(tokens, kinds)) if kind == CONTROL]
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    pre = [{"type": "Digits", "individual_digits": True}, {**byte_level, "add_prefix_space": False}]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": {text: i for i, text in enumerate(tokens)}, "merges": metadata["tokenizer.ggml.merges"]}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre}, "post_processor": None,
                 "decoder": byte_level, "model": model}
    decoder = {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in added}
    config = {"add_prefix_space": False, "added_tokens_decoder": decoder,
              "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": "<|im_start|>",
              "chat_template": metadata["tokenizer.chat_template"], "clean_up_tokenization_spaces": False,
              "eos_token": "<|im_end|>", "model_max_length": 8192, "pad_token": "<|im_end|>",
              "tokenizer_class": "GPT2Tokenizer", "unk_token": "<|endoftext|>", "vocab_size": len(tokens)}
    return {"tokenizer.json": to_json(tokenizer), "tokenizer_config.json": to_json(config)}
