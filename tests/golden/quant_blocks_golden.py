# Packages: gguf, numpy (requirements.txt).
"""Makes tests/data/quant/blocks: random blocks of each GGML format, and the values to which the gguf package
dequantizes them. A file contains the number of values as a little-endian uint32, then the blocks, then the values as
float32.

    python tests/golden/quant_blocks_golden.py [--output DIRECTORY]
"""
import argparse
import pathlib
import struct

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "quant" / "blocks"

# The offsets of the half-precision scales and minimums in a block.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "TQ1_0": [52],
          "TQ2_0": [64], "IQ1_S": [0], "IQ1_M": [], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0],
          "IQ3_S": [0], "NVFP4": []}
# Bits of 0, -0, the smallest subnormals, the largest subnormal, the smallest normal number and the largest numbers.
EXTREMES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(5)
    for name, offsets in HALVES.items():
        quant_type = GGMLQuantizationType[name]
        columns, size = GGML_QUANT_SIZES[quant_type]
        count = 2048 * 4 // columns
        blocks = random.integers(0, 256, (count, size), dtype=numpy.uint8)
        for i, block in enumerate(blocks):
            for offset in offsets:
                half = EXTREMES[(i + offset) % 8]
                if i >= 8:
                    half = int(numpy.float16(random.normal() * 0.05).view(numpy.uint16))
                block[offset:offset + 2] = list(struct.pack("<H", half))
        blocks[8, [j for j in range(size) if not any(p <= j < p + 2 for p in offsets)]] = 0xFF
        blocks[9, [j for j in range(size) if not any(p <= j < p + 2 for p in offsets)]] = 0
        if name == "IQ1_M":
            # The half-precision scale is in the top four bits of the last four words.
            for i, block in enumerate(blocks):
                half = EXTREMES[i] if i < 8 else int(numpy.float16(random.normal() * 0.05).view(numpy.uint16))
                for word in range(4):
                    block[49 + 2 * word] = block[49 + 2 * word] & 0x0F | (half >> 4 * word & 15) << 4
        if name == "NVFP4":
            # All scales occur, among them 0x7f, which GGML reads as 0.
            blocks[:64, :4] = numpy.arange(256, dtype=numpy.uint8).reshape(64, 4)
        if name == "MXFP4":
            # The first blocks cover the two exponents that give subnormals and the largest one without overflow.
            blocks[:, 0] = random.integers(110, 135, count)
            blocks[:10, 0] = [0, 1, 2, 3, 127, 128, 250, 251, 0, 251]
        values = dequantize(blocks.reshape(1, -1), quant_type).reshape(-1).astype("<f4")
        assert values.size == count * columns and numpy.isfinite(values).all()
        (output / f"{name}.bin").write_bytes(struct.pack("<I", values.size) + blocks.tobytes() + values.tobytes())


if __name__ == "__main__":
    main()
