#!/usr/bin/env python3
"""Write a Hugging Face checkpoint folder from a GGUF file (qwen2, qwen3 or llama; dense), dequantised exactly to f32.

    gguf_to_hf.py MODEL.gguf OUT_FOLDER [--tokenizer FOLDER] [--shard-bytes N]

The folder is what the tests load to show that a model answers alike from both kinds of file. It is written beside
its place and renamed when it is whole. Needs numpy.
"""
import argparse
import json
import os
import shutil
import sys

import numpy as np

from gguf_file import GGUFFile

LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
       "output.weight": "lm_head.weight"}
CLASSES = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM"}
ROWS = 4096  # converted at a time


def published_name(name):
    if name in TOP:
        return TOP[name]
    _, layer, stem, end = name.split(".")
    return f"model.layers.{layer}.{LAYER[stem]}.{end}"


def half_rotation(rows, heads):
    """Llama GGUFs keep q and k rows in the order of interleaved pairs; published files pair the two halves."""
    size = rows.shape[0] // heads
    return rows.reshape(heads, size // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def short_float(value):
    """The shortest decimal that is this float32: 1e-05, not 9.999999747378752e-06."""
    return float(np.format_float_positional(np.float32(value), unique=True))


def config_of(gguf):
    meta = gguf.metadata
    arch = meta["general.architecture"]
    if arch not in CLASSES:
        raise SystemExit(f"architecture {arch}: only {', '.join(CLASSES)} are known here")
    if f"{arch}.rope.scaling.type" in meta or "rope_freqs.weight" in gguf.tensors:
        raise SystemExit("rope scaling is not known here")
    heads = meta[f"{arch}.attention.head_count"]
    hidden = meta[f"{arch}.embedding_length"]
    config = {"architectures": [CLASSES[arch]], "model_type": arch, "hidden_act": "silu", "hidden_size": hidden,
              "intermediate_size": meta[f"{arch}.feed_forward_length"],
              "max_position_embeddings": meta[f"{arch}.context_length"], "num_attention_heads": heads,
              "num_hidden_layers": meta[f"{arch}.block_count"],
              "num_key_value_heads": meta.get(f"{arch}.attention.head_count_kv", heads),
              "rms_norm_eps": short_float(meta[f"{arch}.attention.layer_norm_rms_epsilon"]),
              "rope_theta": meta.get(f"{arch}.rope.freq_base", 10000.0),
              "tie_word_embeddings": "output.weight" not in gguf.tensors, "torch_dtype": "float32",
              "vocab_size": gguf.tensors["token_embd.weight"][1][0],
              "bos_token_id": meta.get("tokenizer.ggml.bos_token_id"),
              "eos_token_id": meta.get("tokenizer.ggml.eos_token_id")}
    if arch != "qwen2":
        config["head_dim"] = meta.get(f"{arch}.attention.key_length", hidden // heads)
        config["attention_bias"] = False
    if arch != "llama":
        config["use_sliding_window"] = False
    return config


def pieces(gguf, name, config):
    """The tensor's rows in order, some at a time."""
    shape = gguf.tensors[name][1]
    heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
    stem = name.split(".")[-2]
    if config["model_type"] == "llama" and stem in heads:
        yield half_rotation(gguf.rows(name), config[heads[stem]])
        return
    count = shape[0] if len(shape) > 1 else 1
    for first in range(0, count, ROWS):
        yield gguf.rows(name, first, ROWS)


def write_shard(gguf, names, config, path):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        size = 4 * int(np.prod(gguf.tensors[name][1], dtype=np.int64))
        header[published_name(name)] = {"dtype": "F32", "shape": list(gguf.tensors[name][1]),
                                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            for rows in pieces(gguf, name, config):
                rows.tofile(out)
    return at


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2)
        out.write("\n")


def convert(source, folder, tokenizer=None, shard_bytes=None):
    gguf = GGUFFile(source)
    config = config_of(gguf)
    temporary = f"{folder}.{os.getpid()}.tmp"
    os.makedirs(temporary)
    try:
        shards, room = [[]], 0
        for name in gguf.tensors:
            size = 4 * int(np.prod(gguf.tensors[name][1], dtype=np.int64))
            if shard_bytes and shards[-1] and room + size > shard_bytes:
                shards.append([])
                room = 0
            shards[-1].append(name)
            room += size
        where, total = {}, 0
        for number, names in enumerate(shards, 1):
            file = "model.safetensors" if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            total += write_shard(gguf, names, config, os.path.join(temporary, file))
            where.update({published_name(name): file for name in names})
        if len(shards) > 1:
            write_json(os.path.join(temporary, "model.safetensors.index.json"),
                       {"metadata": {"total_size": total}, "weight_map": where})
        write_json(os.path.join(temporary, "config.json"), config)
        # Qwen's published files name two ends: <|im_end|>, and <|endoftext|>, which is also the padding.
        ends = [config["eos_token_id"]]
        padding = gguf.metadata.get("tokenizer.ggml.padding_token_id")
        if config["model_type"].startswith("qwen") and padding not in (None, *ends):
            ends.append(padding)
        write_json(os.path.join(temporary, "generation_config.json"),
                   {"bos_token_id": config["bos_token_id"], "eos_token_id": ends})
        for name in ("tokenizer.json", "tokenizer_config.json"):
            if tokenizer:
                shutil.copyfile(os.path.join(tokenizer, name), os.path.join(temporary, name))
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf")
    parser.add_argument("folder")
    parser.add_argument("--tokenizer", help="a folder whose tokenizer files are copied")
    parser.add_argument("--shard-bytes", type=int, help="start a new file when one would grow past this")
    arguments = parser.parse_args()
    total = convert(arguments.gguf, arguments.folder, arguments.tokenizer, arguments.shard_bytes)
    print(f"{arguments.folder}: {total:,} bytes of weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
