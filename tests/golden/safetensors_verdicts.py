# Packages: safetensors (requirements.txt).
"""Makes tests/data/safetensors_verdicts.txt: for each of 10000 damaged safetensors files, 1 if the safetensors
package accepts it and 0 if not. tests/model_loader/safetensors_test.cc contains the same generator, so the files are
not stored. The last line is the generator's final state; the test checks that its generator ends in the same state.

    python tests/golden/safetensors_verdicts.py [--output DIRECTORY]
"""

import argparse
import pathlib
import struct

from safetensors import deserialize

OUT = pathlib.Path(__file__).resolve().parent.parent / "data"

BASES = [
    b'{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},'
    b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  ',
    b'{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}',
    b'{"a":{"x":[1,{"y":null}],"shape":[16],"dtype":"U8","data_offsets":[0,16]},"z":{"dtype":"I64","shape":[0],"data_offsets":[16,16]}}',
]
ALPHABET = b'{}[]",:0123456789-.eE+ \\u\n\x00\xffabdFBIU_ntrfalse'


class Generator:
    def __init__(self):
        self.state = 1

    def next(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit


def make(generator):
    header = bytearray(BASES[generator.next(len(BASES))])
    for _ in range(generator.next(3)):
        pos = generator.next(len(header))
        kind = generator.next(4)
        byte = ALPHABET[generator.next(len(ALPHABET))]
        if kind == 0:
            header[pos] = byte
        elif kind == 1:
            header.insert(pos, byte)
        elif kind == 2:
            del header[pos]
        else:
            end = min(len(header), pos + 1 + generator.next(30))
            header[pos:pos] = header[pos:end]
    length = len(header)
    if generator.next(10) == 0:
        length += generator.next(5) - 2
    data = 16
    if generator.next(10) == 0:
        data += generator.next(3) - 1
    return struct.pack("<Q", length) + bytes(header) + b"x" * data


def accepted(data):
    try:
        deserialize(data)
        return "1"
    except Exception:
        return "0"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    generator = Generator()
    verdicts = "".join(accepted(make(generator)) for _ in range(10000))
    lines = [verdicts[start : start + 100] for start in range(0, len(verdicts), 100)] + [str(generator.state)]
    (output / "safetensors_verdicts.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
