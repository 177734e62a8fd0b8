"""Upper bounds of the speed with which any program can run a GGUF file whose codes it multiplies by 8-bit inputs.

Reads only the header of the file. The limits of the machine come from machine_probe. docs/BENCHMARKS.md explains the bounds.
"""
import struct

# Of a CPU where vpdpbusd and float multiply-adds share their units: for each 128 columns of one output, dot products / (dot
# products + multiplications + multiply-adds). K-quants also multiply 8 scales and minimums by super scales, once for the 12
# rows of a tile.
K_QUANTS = 32 / (41 + 8 / 12)
# "int4/128" is the form of 4-bit checkpoints with a scale per 128 columns.
SCALE_BOUND = {"bfloat16": 1.0, "int8": 32 / 34, "int4/128": 32 / 34, "int4": 32 / 37, "Q8_0": 32 / 37, "Q4_0": 32 / 37,
               "Q4_1": 32 / 41, "Q5_0": 32 / 37, "Q4_K": K_QUANTS, "Q5_K": K_QUANTS, "Q6_K": K_QUANTS}
# Of Intel's CPUs, where two units do all 512-bit arithmetic: conversions to float too, one per scale, and what makes bytes of
# codes, once for 12 rows. For 8 columns, that takes 3 instructions with 4 bits, 5 with a table, 8 with 5 bits and 11 with 6 bits.
# bfloat16 is multiplied by FMAs: 48 for each 4 instructions that make floats of weights.
INTEL_BOUND = {"bfloat16": 48 / 52, "int8": 32 / 35, "int4/128": 32 / (35 + 16 * 3 / 12), "int4": 32 / (41 + 16 * 5 / 12),
               "Q8_0": 32 / 41, "Q4_0": 32 / (41 + 16 * 3 / 12), "Q4_1": 32 / (45 + 16 * 3 / 12),
               "Q5_0": 32 / (41 + 16 * 8 / 12), "Q4_K": 32 / (45 + (16 * 3 + 8 * 3) / 12),
               "Q5_K": 32 / (45 + (16 * 8 + 8 * 3) / 12), "Q6_K": 32 / (49 + (16 * 11 + 8 * 3) / 12)}
# Of AMX, whose instruction takes as long for the 32 or 16 columns of a scale as for 64.
AMX_BOUND = {"bfloat16": 1.0, "int8": 1.0, "int4/128": 1.0, "Q6_K": 0.25}
# ggml's number of a type: its name and the bits of a weight, scales included
TYPES = {2: ("Q4_0", 4.5), 3: ("Q4_1", 5.0), 6: ("Q5_0", 5.5), 8: ("Q8_0", 8.5), 12: ("Q4_K", 4.5), 13: ("Q5_K", 5.5),
         14: ("Q6_K", 6.5625), 30: ("bfloat16", 16.0)}
QUANTIZATIONS = {"int8": ("int8", 8.125), "int4": ("int4", 4.5)}  # of vllmcli's --quantization
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read_header(path):
    """Returns the metadata and [(name, shape, number of the type)] of the tensors."""
    with open(path, "rb") as file:
        def number(code):
            return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]

        def string():
            return file.read(number("Q")).decode("utf-8", "replace")

        def value(kind):
            if kind == 8:
                return string()
            if kind == 9:
                item = number("I")
                return [value(item) for _ in range(number("Q"))]
            return number(SCALARS[kind])

        if file.read(4) != b"GGUF" or number("I") not in (2, 3):
            raise ValueError(f"{path} is not a GGUF file of version 2 or 3")
        num_tensors, num_values = number("Q"), number("Q")
        metadata = {}
        for _ in range(num_values):
            key = string()
            metadata[key] = value(number("I"))
        tensors = []
        for _ in range(num_tensors):
            name = string()
            shape = [number("Q") for _ in range(number("I"))]
            tensors.append((name, shape, number("I")))
            number("Q")
        return metadata, tensors


def arithmetic_bound(kind, limits):
    """Operations per second of a matrix of this type, with whichever instruction allows more."""
    instruction = "bfloat16" if kind == "bfloat16" else "int8"
    amx = limits.get("amx_" + instruction, 0.0) * AMX_BOUND.get(kind, 0.5)
    if not limits.get("cpu", "").startswith("GenuineIntel"):
        return max(limits[instruction] * SCALE_BOUND[kind], amx)
    if kind == "bfloat16":
        return max(limits["bfloat16"], limits["fma"] * INTEL_BOUND[kind], amx)
    return max(limits["int8"] * INTEL_BOUND[kind], amx)


class Bounds:
    """Of the model in `path`. All matrices have the type `quantization` ("int8" or "int4") or, if it is None, their type
    in the file. With "int4", the head has int8. `limits` are what machine_probe prints."""

    def __init__(self, path, quantization=None):
        metadata, tensors = read_header(path)
        arch = metadata["general.architecture"]
        self.layers = metadata[arch + ".block_count"]
        heads, hidden = metadata[arch + ".attention.head_count"], metadata[arch + ".embedding_length"]
        self.attention_size = heads * metadata.get(arch + ".attention.key_length", hidden // heads)
        # (weights, name of the type, bytes) of the matrices
        self.linear, self.head = [], None
        for name, shape, number in tensors:
            if len(shape) < 2:
                continue
            if len(shape) > 2 or number not in TYPES:
                raise ValueError(f"{path}: no bound is known for tensor {name} (type {number}, shape {shape})")
            kind, bits = QUANTIZATIONS[quantization] if quantization else TYPES[number]
            weights = shape[0] * shape[1]
            if name == "output.weight" or (name == "token_embd.weight" and self.head is None):
                if quantization == "int4":
                    kind, bits = QUANTIZATIONS["int8"]
                self.head = (weights, kind, weights * bits / 8)
            elif name != "token_embd.weight":
                self.linear.append((weights, kind, weights * bits / 8))

    def _seconds(self, matrices, rows, limits):
        return sum(2 * weights * rows / arithmetic_bound(kind, limits) for weights, kind, _ in matrices)

    def prefill(self, tokens, limits):
        """Tokens per second of one prompt. Attention runs at the rate of bfloat16, without the upper triangle."""
        attention = 2 * tokens * tokens * self.attention_size * self.layers / arithmetic_bound("bfloat16", limits)
        memory = sum(size for _, _, size in self.linear) / limits["read"]
        return tokens / (max(memory, self._seconds(self.linear, tokens, limits)) + attention)

    def decode(self, streams, limits):
        """Tokens per second of all streams, if each step reads all weights once and attention takes no time."""
        matrices = self.linear + [self.head]
        memory = sum(size for _, _, size in matrices) / limits["read"]
        return streams / max(memory, self._seconds(matrices, streams, limits))
