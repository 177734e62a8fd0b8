#!/usr/bin/env python3
"""Writes a GGUF file of random weights in the shape of a known model, for benchmarks.

    pip install gguf==0.19.0 numpy==2.4.6
    bench/make_shape_gguf.py qwen2.5-0.5b|llama-3.2-1b|llama-3.1-8b bf16|q8_0|q4_0|q6_k|q4_k_m OUT.gguf

Each tensor has the type that llama-quantize would choose. In a Q4_K_M file some tensors are Q6_K. Blocks of both types have 256
columns, so tensors with rows of other lengths are Q5_0 instead of Q4_K, and Q8_0 instead of Q6_K. The vocabulary has the right
size but its words are made up, so use the file only to measure speed. Only one tensor at a time is in memory.
"""
import argparse

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType

# architecture, layers, hidden, intermediate, heads, KV heads, vocabulary, tied, RoPE base, context, head dimension
SHAPES = {
    "qwen2.5-0.5b": ("qwen2", 24, 896, 4864, 14, 2, 151936, True, 1e6, 32768, 64),
    "llama-3.2-1b": ("llama", 16, 2048, 8192, 32, 8, 128256, True, 5e5, 131072, 64),
    "llama-3.1-8b": ("llama", 32, 4096, 14336, 32, 8, 128256, False, 5e5, 131072, 128),
}
FILE_TYPES = {"bf16": gguf.LlamaFileType.MOSTLY_BF16, "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
              "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0, "q6_k": gguf.LlamaFileType.MOSTLY_Q6_K,
              "q4_k_m": gguf.LlamaFileType.MOSTLY_Q4_K_M}
DEVIATION = 0.02  # of the weights


def tensor_type(name, layer, layers, columns, wanted):
    if wanted != "q4_k_m":
        kind = {"bf16": Type.BF16, "q8_0": Type.Q8_0, "q4_0": Type.Q4_0, "q6_k": Type.Q6_K}[wanted]
        if wanted == "q4_0" and name in ("token_embd", "output"):
            kind = Type.Q6_K
    else:
        more_bits = layer is not None and (layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2)
        kind = Type.Q6_K if name in ("token_embd", "output") or (name in ("attn_v", "ffn_down") and more_bits) else Type.Q4_K
    if columns % 256 == 0:
        return kind
    return {Type.Q4_K: Type.Q5_0, Type.Q6_K: Type.Q8_0}.get(kind, kind)


def random_blocks(random, kind, rows, columns):
    """Blocks of random codes, whose scales are chosen so that the weights have DEVIATION."""
    if kind == Type.BF16:
        values = random.standard_normal((rows, columns), dtype=np.float32) * np.float32(DEVIATION)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows * columns // per_block, block_bytes), dtype=np.uint8)

    def put(offset, value):
        blocks[:, offset:offset + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)

    if kind == Type.Q8_0:
        put(0, DEVIATION / 74)
    elif kind == Type.Q4_0:
        put(0, DEVIATION / 4.6)
    elif kind == Type.Q5_0:
        put(0, DEVIATION / 9.2)
    elif kind == Type.Q4_K:
        put(0, DEVIATION / 160)
        put(2, 7.5 * DEVIATION / 160)
    elif kind == Type.Q6_K:
        put(208, DEVIATION / 1370)
    return blocks.reshape(rows, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=FILE_TYPES)
    parser.add_argument("out")
    args = parser.parse_args()
    arch, layers, hidden, intermediate, heads, kv_heads, vocabulary, tied, base, context, head_dim = SHAPES[args.shape]
    writer = gguf.GGUFWriter(args.out, arch)
    writer.add_name(args.shape)
    writer.add_file_type(FILE_TYPES[args.type])
    writer.add_block_count(layers)
    writer.add_context_length(context)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(intermediate)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(base)
    if arch == "llama":
        writer.add_rope_dimension_count(head_dim)
        writer.add_vocab_size(vocabulary)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [gguf.TokenType.UNKNOWN] + 2 * [gguf.TokenType.CONTROL] + 256 * [gguf.TokenType.BYTE]
    tokens += [f"t{i}" for i in range(vocabulary - len(tokens))]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(vocabulary)])
    writer.add_token_types([int(t) for t in types] + (vocabulary - len(types)) * [int(gguf.TokenType.NORMAL)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    kv = kv_heads * head_dim
    matrices = [("attn_q", heads * head_dim, hidden), ("attn_k", kv, hidden), ("attn_v", kv, hidden),
                ("attn_output", hidden, heads * head_dim), ("ffn_gate", intermediate, hidden),
                ("ffn_up", intermediate, hidden), ("ffn_down", hidden, intermediate)]
    planned = []  # name, rows (None: a float32 vector), columns, type
    planned.append(("token_embd.weight", vocabulary, hidden, tensor_type("token_embd", None, layers, hidden, args.type)))
    for layer in range(layers):
        for norm in ("attn_norm", "ffn_norm"):
            planned.append((f"blk.{layer}.{norm}.weight", None, hidden, Type.F32))
        for name, rows, columns in matrices:
            planned.append((f"blk.{layer}.{name}.weight", rows, columns, tensor_type(name, layer, layers, columns, args.type)))
            if arch == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                planned.append((f"blk.{layer}.{name}.bias", None, rows, Type.F32))
    planned.append(("output_norm.weight", None, hidden, Type.F32))
    if not tied:
        planned.append(("output.weight", vocabulary, hidden, tensor_type("output", None, layers, hidden, args.type)))
    for name, rows, columns, kind in planned:
        if rows is None:
            writer.add_tensor_info(name, (columns,), np.dtype(np.float32), columns * 4)
            continue
        per_block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        row_bytes = columns // per_block * block_bytes
        writer.add_tensor_info(name, (rows, row_bytes), np.dtype(np.uint8), rows * row_bytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(1)
    for name, rows, columns, kind in planned:
        if rows is None:
            writer.write_tensor_data((np.zeros if name.endswith("bias") else np.ones)(columns, dtype=np.float32))
        else:
            writer.write_tensor_data(random_blocks(random, kind, rows, columns))
    writer.close()


if __name__ == "__main__":
    main()
