#!/usr/bin/env python3
"""Counts what a decode step's shaders do for each weight, from the compiled shaders: instructions in the loop over columns
of linear_rows with one row of x, operations on vectors counted by element. No GPU is needed.

    shader_counts.py BUILD/shaders
"""
import collections
import os
import struct
import sys

# Numbers of the SPIR-V specification, and of its extended instructions for GLSL.
TYPE_VECTOR, TYPE_POINTER, VARIABLE, LOAD, EXTENDED, LABEL, LOOP_MERGE = 23, 32, 59, 61, 12, 248, 246
ACCESS_CHAIN, IN_BOUNDS_ACCESS_CHAIN, STORAGE_BUFFER = 65, 66, 12
FMA, UNPACK_HALF = 50, 62
FLOAT = {127, 129, 131, 133, 136, 142}
INTEGER = {124, 126, 128, 130, 132, 134, 137, *range(194, 206)}
CONVERT = {109, 110, 111, 112}
COMPARE = {169, *range(170, 184)}
# Bytes that a weight takes in memory, scales included (weight_layout.h).
BYTES = {"f32": 4, "f16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32, "q4_1": 20 / 32, "q4_k": 144 / 256, "q6_k": 210 / 256}
WEIGHTS_IN_A_TURN = 8


def instructions(path):
    with open(path, "rb") as f:
        words = [word for word, in struct.iter_unpack("<I", f.read())]
    if not words or words[0] != 0x07230203:
        raise SystemExit(f"{path}: this is no SPIR-V module")
    at = 5
    while at < len(words):
        length = words[at] >> 16
        yield words[at] & 0xffff, words[at + 1:at + length]
        at += length


def loops(code):
    """Of each loop where it begins and ends, and how deep it lies."""
    labels = {operands[0]: i for i, (kind, operands) in enumerate(code) if kind == LABEL}
    found = [(max(j for j in labels.values() if j < i), labels[operands[0]])
             for i, (kind, operands) in enumerate(code) if kind == LOOP_MERGE]
    return [(first, end, sum(a <= first and end <= b for a, b in found)) for first, end in found]


def count(path):
    code = list(instructions(path))
    width = collections.defaultdict(lambda: 1)
    buffers, pointers = set(), set()
    for kind, operands in code:
        if kind == TYPE_VECTOR:
            width[operands[0]] = operands[2]
        elif kind == TYPE_POINTER and operands[1] == STORAGE_BUFFER:
            buffers.add(operands[0])
        elif kind in (VARIABLE, ACCESS_CHAIN, IN_BOUNDS_ACCESS_CHAIN) and operands[0] in buffers:
            pointers.add(operands[1])
    # The loop over a chunk's columns: the outermost that reads buffers and lies in the one over chunks.
    inside = [(end - first, first, end) for first, end, depth in loops(code) if depth == 2 and
              any(kind == LOAD and operands[2] in pointers for kind, operands in code[first:end])]
    _, first, end = max(inside)
    counts = collections.Counter()
    for kind, operands in code[first:end]:
        if kind == LOAD and operands[2] in pointers:
            counts["loads"] += 1
        elif kind == EXTENDED and operands[3] == FMA:
            counts["fma"] += width[operands[0]]
        elif kind == EXTENDED and operands[3] == UNPACK_HALF:
            counts["convert"] += 2
        elif kind in CONVERT:
            counts["convert"] += width[operands[0]]
        elif kind in FLOAT:
            counts["float"] += width[operands[0]]
        elif kind in INTEGER or kind in COMPARE:
            counts["integer"] += width[operands[0]]
    return counts


def main():
    folder, = sys.argv[1:] or [None]
    if folder is None or not os.path.isdir(folder):
        raise SystemExit(__doc__)
    print("| weights | bytes | loads | fma | other f32 | conversions | integer | all but loads, per byte |")
    print("|---|---|---|---|---|---|---|---|")
    for name, size in BYTES.items():
        counts = count(os.path.join(folder, f"linear_rows.{name}.spv"))
        each = {what: counts[what] / WEIGHTS_IN_A_TURN for what in ("loads", "fma", "float", "convert", "integer")}
        work = sum(each.values()) - each["loads"]
        print(f"| {name} | {size:.2f} | " + " | ".join(f"{value:.2f}" for value in each.values()) + f" | {work / size:.1f} |")


if __name__ == "__main__":
    main()
