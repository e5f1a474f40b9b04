"""Read a GGUF file with the standard library, and its tensors with numpy.

Written from the format's description, apart from the engine's own reader, so that the two can be compared.
The dequantised values are exact: every step is the float32 arithmetic that the format defines.
"""
import mmap
import struct

# GGUF metadata value types -> struct format of one little-endian value
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

# ggml type -> (name, values in a block, bytes of a block)
TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
         6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 12: ("Q4_K", 256, 144),
         13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210)}


class GGUFFile:
    """metadata: key -> value. tensors: name -> (type, shape with the slowest dimension first, byte offset)."""

    def __init__(self, source):
        """source: a path, or the bytes of the beginning of a file (enough for the metadata)."""
        if isinstance(source, (bytes, bytearray)):
            self.data = memoryview(source)
        else:
            with open(source, "rb") as f:
                self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 0
        magic, version = self._read("4s"), self._read("I")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{source if isinstance(source, str) else 'data'}: not a GGUF file of version 2 or 3")
        tensors, pairs = self._read("Q"), self._read("Q")
        self.metadata = {}
        for _ in range(pairs):
            key = self._string()
            self.metadata[key] = self._value(self._read("I"))
        self.tensors = {}
        for _ in range(tensors):
            name = self._string()
            shape = [self._read("Q") for _ in range(self._read("I"))]
            self.tensors[name] = (self._read("I"), tuple(reversed(shape)), self._read("Q"))
        alignment = self.metadata.get("general.alignment", 32)
        self.data_at = (self.at + alignment - 1) // alignment * alignment

    def _read(self, form):
        form = "<" + form
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def _string(self):
        size = self._read("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at]).decode("utf-8")

    def _value(self, kind):
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            inner, count = self._read("I"), self._read("Q")
            if inner == STRING:
                return [self._string() for _ in range(count)]
            form = f"<{count}{SCALARS[inner]}"
            values = list(struct.unpack_from(form, self.data, self.at))
            self.at += struct.calcsize(form)
            return values
        return self._read(SCALARS[kind])

    def rows(self, name, first=0, count=None):
        """Rows first .. first+count of a tensor as float32 (a vector counts as one row)."""
        import numpy as np
        kind, shape, offset = self.tensors[name]
        if kind not in TYPES:
            raise ValueError(f"{name}: tensor type {kind} is not known here")
        type_name, per_block, block_bytes = TYPES[kind]
        width = shape[-1]
        height = 1
        for size in shape[:-1]:
            height *= size
        count = height - first if count is None else min(count, height - first)
        row_bytes = width // per_block * block_bytes
        raw = np.frombuffer(self.data, np.uint8, count * row_bytes, self.data_at + offset + first * row_bytes)
        return dequantise(raw.reshape(-1, block_bytes), type_name).reshape(count, width)


def dequantise(blocks, kind):
    """blocks: uint8 [n, bytes of a block] -> float32 [n, values of a block]."""
    import numpy as np
    n = len(blocks)

    def half(column):
        return blocks[:, column:column + 2].copy().view("<f2").astype(np.float32)

    def nibbles(raw):
        """The low halves of the bytes, then the high halves."""
        return np.concatenate([raw & 15, raw >> 4], axis=1)

    if kind == "F32":
        return blocks.copy().view("<f4").reshape(n, 1)
    if kind == "F16":
        return half(0)
    if kind == "BF16":
        return (blocks.copy().view("<u2").astype(np.uint32) << 16).view(np.float32)
    if kind == "Q8_0":
        return blocks[:, 2:].view(np.int8).astype(np.float32) * half(0)
    if kind == "Q4_0":
        return (nibbles(blocks[:, 2:]).astype(np.float32) - 8) * half(0)
    if kind == "Q4_1":
        return nibbles(blocks[:, 4:]).astype(np.float32) * half(0) + half(2)
    if kind in ("Q5_0", "Q5_1"):
        at = 2 if kind == "Q5_0" else 4
        fifth = np.unpackbits(blocks[:, at:at + 4], axis=1, bitorder="little")
        q = (nibbles(blocks[:, at + 4:]) | (fifth << 4)).astype(np.float32)
        return (q - 16) * half(0) if kind == "Q5_0" else q * half(0) + half(2)
    if kind in ("Q4_K", "Q5_K"):
        # eight groups of 32 values, each with a 6-bit scale and a 6-bit minimum packed into 12 bytes
        s = blocks[:, 4:16]
        scale = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | ((s[:, :4] >> 6) << 4)], axis=1)
        least = np.concatenate([s[:, 4:8] & 63, (s[:, 8:] >> 4) | ((s[:, 4:8] >> 6) << 4)], axis=1)
        low = blocks[:, -128:].reshape(n, 4, 1, 32)
        q = np.concatenate([low & 15, low >> 4], axis=2).reshape(n, 8, 32)
        if kind == "Q5_K":
            high = blocks[:, 16:48].reshape(n, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)
            q = q | ((high & 1) << 4)
        d = (half(0) * scale.astype(np.float32)).reshape(n, 8, 1)
        m = (half(2) * least.astype(np.float32)).reshape(n, 8, 1)
        return (d * q.astype(np.float32) - m).reshape(n, 256)
    if kind == "Q6_K":
        # two halves of 128 values: four runs of 32 share 64 bytes of low bits and 32 bytes of high bits
        low = blocks[:, :128].reshape(n, 2, 2, 32)
        high = blocks[:, 128:192].reshape(n, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
        q = np.concatenate([low & 15, low >> 4], axis=2) | ((high & 3) << 4)
        scale = blocks[:, 192:208].view(np.int8).astype(np.float32)
        d = (half(208) * scale).reshape(n, 16, 1)
        return (d * (q.reshape(n, 16, 16).astype(np.float32) - 32)).reshape(n, 256)
    raise ValueError(f"tensor type {kind} is not known here")
