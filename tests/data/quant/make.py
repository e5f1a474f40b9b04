"""Writes NAME.blocks (random blocks of each quantized type) and NAME.f32 (their values by gguf's reference).

Needs the PyPI packages gguf 0.17 or later and numpy. Run in this folder: python make.py
"""

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

# Byte offsets of the f16 scales in a block.
SCALES = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0],
}

rng = np.random.default_rng(20250101)
for name, offsets in SCALES.items():
    kind = GGMLQuantizationType[name]
    size, width = GGML_QUANT_SIZES[kind]
    count = 2048 // size
    blocks = rng.integers(0, 256, (count, width), dtype=np.uint8)
    for offset in offsets:
        scales = rng.normal(0, 0.02, count).astype(np.float16)
        scales[0] = np.float16(3e-7)  # a subnormal
        scales[1] = np.float16(-1.5)
        scales[2] = np.float16(0)
        blocks[:, offset : offset + 2] = scales.view(np.uint8).reshape(count, 2)
    blocks.tofile(f"{name.lower()}.blocks")
    dequantize(blocks, kind).astype("<f4").tofile(f"{name.lower()}.f32")
