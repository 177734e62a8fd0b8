#!/usr/bin/env python3
"""Writes a variant of a GGUF model: with bfloat16 weights, or with only its first layers. To measure draft models.

    pip install gguf==0.19.0 numpy==2.4.6
    bench/make_gguf_variant.py IN.gguf OUT.gguf [--bf16] [--layers N]
"""
import argparse
import re

import gguf
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("source")
parser.add_argument("target")
parser.add_argument("--bf16", action="store_true", help="store matrices as bfloat16 instead of as they are")
parser.add_argument("--layers", type=int, help="keep only the first N layers")
arguments = parser.parse_args()

reader = gguf.GGUFReader(arguments.source)
architecture = reader.fields["general.architecture"].contents()
writer = gguf.GGUFWriter(arguments.target, architecture)
for name, field in reader.fields.items():
    if name.startswith("GGUF.") or name == "general.architecture":
        continue
    value = field.contents()
    if name == f"{architecture}.block_count" and arguments.layers:
        value = arguments.layers
    if field.types[0] == gguf.GGUFValueType.ARRAY:
        writer.add_array(name, value)
    else:
        writer.add_key_value(name, value, field.types[0])

for tensor in reader.tensors:
    layer = re.match(r"blk\.(\d+)\.", tensor.name)
    if layer and arguments.layers and int(layer.group(1)) >= arguments.layers:
        continue
    if arguments.bf16 and len(tensor.shape) > 1:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        data = gguf.quants.quantize(values.astype(np.float32), gguf.GGMLQuantizationType.BF16)
        writer.add_tensor(tensor.name, data, raw_dtype=gguf.GGMLQuantizationType.BF16)
    else:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
