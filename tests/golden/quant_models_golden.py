# Packages: safetensors, torch, transformers (requirements.txt).
"""Makes tests/data/quant/models: a tiny random Llama checkpoint for each quantization scheme, and the float32
log-probabilities that transformers computes with the dequantized weights. This script packs the weights in the same
way as the libraries that define the formats.

    python tests/golden/quant_models_golden.py [--output DIRECTORY] [CASE...]
"""
import argparse
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "quant" / "models"

# Two ranks split the 96 inputs of down_proj in the middle of a group of 32.
BASE = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
            tie_word_embeddings=False)


def pack_rows(codes, bits):
    """Packs unsigned codes [n, k] into int32 [n, ceil(k * bits / 32)]. The first code is in the lowest bits."""
    n, k = codes.shape
    if bits == 3:
        # Codes may begin in one word and end in the next.
        stream = (codes.unsqueeze(-1) >> torch.arange(3)).bitwise_and(1).reshape(n, k * 3 // 32, 32)
        return pack_rows(stream.reshape(n, -1), 1)
    per_word = 32 // bits
    words = -(-k // per_word)
    padded = torch.zeros(n, words * per_word, dtype=torch.int64)
    padded[:, :k] = codes
    shifts = torch.arange(per_word, dtype=torch.int64) * bits
    packed = (padded.view(n, words, per_word) << shifts).sum(-1)
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32).contiguous()


def pack_columns(codes, bits):
    return pack_rows(codes.t(), bits).t().contiguous()


def groups_of(k, size):
    return torch.arange(k) // size if size > 0 else torch.zeros(k, dtype=torch.int64)


def quantize(weight, bits, group, symmetric, scale_type):
    """Returns codes [n, k], and scales and zero points [n, groups]. `group` [k] is the group of each column."""
    n, num_groups = weight.shape[0], int(group.max()) + 1
    top = 2**bits - 1
    scales, zeros = torch.zeros(n, num_groups), torch.zeros(n, num_groups, dtype=torch.int64)
    for g in range(num_groups):
        part = weight[:, group == g]
        low, high = part.min(1).values.clamp(max=0), part.max(1).values.clamp(min=0)
        if symmetric:
            scales[:, g] = torch.maximum(-low, high) * 2 / top
            zeros[:, g] = 2 ** (bits - 1)
        else:
            scales[:, g] = (high - low) / top
            # Zero points start at 1, because version 1 of the GPTQ format cannot store 0.
            zeros[:, g] = torch.round(-low / scales[:, g]).clamp(1, top).to(torch.int64)
    scales = scales.to(scale_type).float()
    codes = (torch.round(weight / scales[:, group]) + zeros[:, group]).clamp(0, top).to(torch.int64)
    return codes, scales, zeros


def dequantize(codes, scales, zeros, group):
    return (codes - zeros[:, group]).float() * scales[:, group]


def gptq(bits, size, symmetric, desc_act, version=1, with_index=True):
    def make(weight, random):
        group = groups_of(weight.shape[1], size)
        if desc_act:
            group = group[torch.randperm(weight.shape[1], generator=random)]
        codes, scales, zeros = quantize(weight, bits, group, symmetric, torch.float16)
        stored = zeros - 1 if version == 1 else zeros
        tensors = {"qweight": pack_columns(codes.t(), bits), "qzeros": pack_rows(stored.t(), bits),
                   "scales": scales.t().to(torch.float16).contiguous()}
        if with_index:
            tensors["g_idx"] = group.to(torch.int32)
        return tensors, dequantize(codes, scales, zeros, group)

    config = dict(quant_method="gptq", bits=bits, group_size=size, sym=symmetric, desc_act=desc_act)
    if version == 2:
        config["checkpoint_format"] = "gptq_v2"
    return make, config


def awq(size, skipped=None):
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])

    def pack(codes):
        k, n = codes.shape
        return pack_rows(codes.view(k, n // 8, 8)[:, :, order].reshape(k, n), 4)

    def make(weight, _):
        group = groups_of(weight.shape[1], size)
        codes, scales, zeros = quantize(weight, 4, group, False, torch.float16)
        return ({"qweight": pack(codes.t()), "qzeros": pack(zeros.t().contiguous()),
                 "scales": scales.t().to(torch.float16).contiguous()}, dequantize(codes, scales, zeros, group))

    return make, dict(quant_method="awq", bits=4, group_size=size, version="gemm", zero_point=True,
                      modules_to_not_convert=skipped)


def compressed(weights, format_name, ignore=("lm_head",), targets=("Linear",), permuted=False, activations=None):
    bits, symmetric = weights["num_bits"], weights["symmetric"]
    size = weights.get("group_size") or -1

    def make_int(weight, random):
        n, k = weight.shape
        group = groups_of(k, size)
        if permuted:
            group = group[torch.randperm(k, generator=random)]
        codes, scales, zeros = quantize(weight, bits, group, symmetric, torch.bfloat16)
        if weights["strategy"] == "tensor":
            scales = scales.max().expand(n, 1)
            zeros = torch.full((n, 1), 2 ** (bits - 1))
            codes = (torch.round(weight / scales) + zeros).clamp(0, 2**bits - 1).to(torch.int64)
        tensors = {"weight_scale": (scales[0] if weights["strategy"] == "tensor" else scales).to(torch.bfloat16).contiguous()}
        if format_name == "pack-quantized":
            tensors["weight_packed"] = pack_rows(codes, bits)
            tensors["weight_shape"] = torch.tensor([n, k])
            if not symmetric:
                tensors["weight_zero_point"] = pack_columns(zeros, bits)
        else:
            tensors["weight"] = (codes - 128).to(torch.int8)
            if not symmetric:
                tensors["weight_zero_point"] = (zeros - 128).to(torch.int8)
        if permuted:
            tensors["weight_g_idx"] = group.to(torch.int32)
        return tensors, dequantize(codes, scales, zeros, group)

    def make_float(weight, _):
        scale = weight.abs().amax(1, keepdim=True) / 448
        if weights["strategy"] == "tensor":
            scale = scale.max().reshape(1)
        scale = scale.to(torch.bfloat16)
        codes = (weight / scale.float()).to(torch.float8_e4m3fn)
        return {"weight": codes, "weight_scale": scale}, codes.float() * scale.float()

    config = dict(quant_method="compressed-tensors", format=format_name, quantization_status="compressed",
                  ignore=list(ignore), kv_cache_scheme=None,
                  config_groups={"group_0": dict(targets=list(targets), weights=weights, input_activations=activations,
                                                 output_activations=None)})
    return (make_float if weights["type"] == "float" else make_int), config


def weights_of(bits, strategy, kind="int", symmetric=True, **more):
    return dict(num_bits=bits, type=kind, symmetric=symmetric, strategy=strategy, dynamic=False, **more)


def fp8(block, skipped=()):
    def make(weight, _):
        n, k = weight.shape
        rows, columns = block
        scales = torch.zeros(-(-n // rows), -(-k // columns))
        for i in range(scales.shape[0]):
            for j in range(scales.shape[1]):
                scales[i, j] = weight[i * rows:(i + 1) * rows, j * columns:(j + 1) * columns].abs().max() / 448
        spread = scales.repeat_interleave(rows, 0)[:n].repeat_interleave(columns, 1)[:, :k]
        codes = (weight / spread).to(torch.float8_e4m3fn)
        return {"weight": codes, "weight_scale_inv": scales}, codes.float() * spread

    return make, dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3", weight_block_size=list(block),
                      modules_to_not_convert=list(skipped))


def fbgemm():
    def make(weight, _):
        scale = weight.abs().amax(1, keepdim=True) / 448
        codes = (weight / scale).to(torch.float8_e4m3fn)
        return {"weight": codes, "weight_scale": scale}, codes.float() * scale

    return make, dict(quant_method="fbgemm_fp8", activation_scale_ub=1200.0, modules_to_not_convert=["lm_head"])


def auto_round(base, packing_format, **more):
    make, config = base
    return make, dict(quant_method="auto-round", packing_format=packing_format, bits=config["bits"],
                      group_size=config["group_size"], sym=config.get("sym", False), data_type="int", **more)


E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def nearest(values, table):
    """Returns the indexes of the table's entries that are nearest to the values."""
    return (values.unsqueeze(-1) - table).abs().argmin(-1)


def float4(kind):
    """NVFP4 of compressed-tensors ("nvfp4") and Model Optimizer ("modelopt"), and MXFP4 ("mxfp4")."""
    size = 32 if kind == "mxfp4" else 16

    def make(weight, _):
        groups = weight.reshape(weight.shape[0], -1, size)
        largest = groups.abs().amax(-1)
        if kind == "mxfp4":
            exponents = torch.floor(torch.log2(largest / 4))
            scales = 2.0 ** exponents
            tensors = {"weight_scale": (exponents + 127).to(torch.uint8)}
        else:
            total = weight.abs().max() / (448 * 6)
            stored = (largest / 6 / total).to(torch.float8_e4m3fn)
            tensors = {"weight_scale": stored}
            if kind == "modelopt":
                tensors.update(weight_scale_2=total, input_scale=torch.tensor(0.01))
                scales = stored.float() * total
            else:
                tensors.update(weight_global_scale=(1 / total).reshape(1), input_global_scale=torch.tensor([99.0]))
                scales = stored.float() / (1 / total)
        codes = nearest(groups / scales.unsqueeze(-1), E2M1).reshape(weight.shape)
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
        tensors["weight" if kind == "modelopt" else "weight_packed"] = packed
        return tensors, E2M1[codes] * scales.repeat_interleave(size, 1)

    if kind == "modelopt":
        return make, dict(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head", "model.layers.1.self_attn*"])
    weights = dict(num_bits=4, type="float", symmetric=True, dynamic=False, group_size=size,
                   strategy="group" if kind == "mxfp4" else "tensor_group")
    return make, dict(quant_method="compressed-tensors", format=kind + "-pack-quantized", ignore=["lm_head"],
                      config_groups={"group_0": dict(targets=["Linear"], weights=weights)})


NF4 = torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                    0.7229568362236023, 1.0])


def bitsandbytes(bits, nested=False):
    def make8(weight, _):
        scales = weight.abs().amax(1)
        codes = torch.round(weight / scales[:, None] * 127).to(torch.int8)
        return {"weight": codes, "SCB": scales}, codes.float() * scales[:, None] * 7.874015718698502e-3

    def make4(weight, _):
        blocks = weight.reshape(-1, 64)  # blocks may span rows
        scales = blocks.abs().amax(1)
        state = dict(quant_type="nf4", blocksize=64, dtype="bfloat16", shape=list(weight.shape))
        tensors = {"weight.quant_map": NF4.clone()}
        if nested:
            offset = scales.mean()
            table = torch.linspace(-1, 1, 256)
            parts = torch.nn.functional.pad(scales - offset, (0, -len(scales) % 256)).reshape(-1, 256)
            largest = parts.abs().amax(1)
            indexes = nearest(parts / largest[:, None], table)
            tensors.update({"weight.absmax": indexes.flatten()[:len(scales)].to(torch.uint8),
                            "weight.nested_absmax": largest, "weight.nested_quant_map": table.clone()})
            state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=offset.item())
            scales = (table[indexes] * largest[:, None]).flatten()[:len(scales)] + offset
        else:
            tensors["weight.absmax"] = scales
        codes = nearest(blocks / scales[:, None], NF4)
        flat = codes.flatten()
        tensors["weight"] = (flat[::2] << 4 | flat[1::2]).to(torch.uint8).reshape(-1, 1)
        tensors["weight.quant_state.bitsandbytes__nf4"] = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)
        return tensors, (NF4[codes] * scales[:, None]).reshape(weight.shape)

    config = dict(quant_method="bitsandbytes", load_in_4bit=bits == 4, load_in_8bit=bits == 8,
                  llm_int8_skip_modules=["lm_head"])
    return (make4 if bits == 4 else make8), config


def hqq():
    params = dict(nbits=4, channel_wise=True, group_size=32, optimize=True, round_zero=False, axis=1, view_as_float=False)

    def make(weight, _):
        groups = weight.reshape(-1, 32)
        low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
        scales = ((high - low) / 15).to(torch.bfloat16)
        zeros = (-low / scales.float()).to(torch.bfloat16)
        codes = torch.round(groups / scales.float() + zeros.float()).clamp(0, 15).to(torch.uint8)
        half = len(codes) // 2
        values = (codes.float() - zeros.float()) * scales.float()
        return {"W_q": codes[:half] << 4 | codes[half:], "scale": scales, "zero": zeros}, values.reshape(weight.shape)

    return make, dict(quant_method="hqq", skip_modules=["lm_head"],
                      quant_config=dict(weight_quant_params=params, scale_quant_params=None, zero_quant_params=None))


DYNAMIC = dict(num_bits=8, type="int", symmetric=True, strategy="token", dynamic=True)
CASES = {
    "gptq_4bit": gptq(4, 32, True, False),
    "gptq_4bit_without_index": gptq(4, 32, True, False, with_index=False),
    "gptq_4bit_desc_act": gptq(4, 32, False, True),
    "gptq_4bit_one_group": gptq(4, -1, False, False),
    "gptq_8bit": gptq(8, 16, False, False),
    "gptq_8bit_desc_act": gptq(8, 32, True, True),
    "gptq_v2": gptq(4, 32, False, False, version=2),
    "awq": awq(32),
    "awq_partial": awq(16, ["self_attn", "layers.1.mlp.gate_proj"]),
    "w8a8": compressed(weights_of(8, "channel"), "int-quantized", activations=DYNAMIC),
    "w8a8_asymmetric": compressed(weights_of(8, "channel", symmetric=False), "int-quantized", activations=DYNAMIC),
    "w8a8_tensor": compressed(weights_of(8, "tensor"), "int-quantized",
                              ["re:.*lm_head", "re:model\\.layers\\.0\\..*proj"], activations=DYNAMIC),
    "w4a16": compressed(weights_of(4, "group", group_size=32, actorder=None), "pack-quantized"),
    "w4a16_asymmetric": compressed(weights_of(4, "group", symmetric=False, group_size=32), "pack-quantized"),
    "w4a16_actorder": compressed(weights_of(4, "group", group_size=32, actorder="group"), "pack-quantized",
                                 permuted=True),
    "w8a16": compressed(weights_of(8, "channel"), "pack-quantized", [], ["re:.*self_attn.*", "re:.*mlp.*", "lm_head"]),
    "float8_channel": compressed(weights_of(8, "channel", "float"), "float-quantized"),
    "float8_tensor": compressed(weights_of(8, "tensor", "float"), "float-quantized"),
    "float8_blocks": fp8((48, 40), ["lm_head"]),
    "float8_blocks_of_128": fp8((128, 128)),
    "float8_rows": fbgemm(),
    # The position of a case is its seed.
    "nvfp4": float4("nvfp4"),
    "mxfp4": float4("mxfp4"),
    "modelopt_nvfp4": float4("modelopt"),
    "nf4": bitsandbytes(4),
    "nf4_nested": bitsandbytes(4, nested=True),
    "llm_int8": bitsandbytes(8),
    "gptq_2bit": gptq(2, 16, False, False),
    "gptq_3bit": gptq(3, 32, False, False),
    "gptq_3bit_desc_act": gptq(3, 32, True, True),
    "auto_round_gptq": auto_round(gptq(4, 32, True, False, with_index=False), "auto_round:auto_gptq",
                                  extra_config={"lm_head": dict(bits=16, data_type="float")}),
    "auto_round_awq": auto_round(awq(32), "auto_round:auto_awq"),
    "hqq": hqq(),
    "w4a16_actorder_asymmetric": compressed(weights_of(4, "group", symmetric=False, group_size=32, actorder="group"),
                                            "pack-quantized", permuted=True),
    "w4a16_channel": compressed(weights_of(4, "channel"), "pack-quantized"),
}


def is_skipped(name, config):
    """Returns True if the config leaves the layer unquantized. Handles only the configs in CASES."""
    if config["quant_method"] == "compressed-tensors":
        if "re:.*lm_head" in config["ignore"]:
            return "lm_head" in name or "layers.0." in name
        return name in config["ignore"]
    skipped = config.get("modules_to_not_convert") or []
    if config["quant_method"] == "modelopt" and name.startswith("model.layers.1.self_attn"):
        return True
    if config["quant_method"] in ("gptq", "awq", "auto-round", "modelopt", "bitsandbytes", "hqq") and name == "lm_head":
        return True
    return any(part in name for part in skipped)


def make_model(name, case, seed, output):
    make, quantization = case
    random = torch.Generator().manual_seed(seed)
    config = LlamaConfig(**BASE)
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config).eval()
    state = {}
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            layer = parameter_name.removesuffix(".weight")
            norm = "norm" in parameter_name
            values = torch.randn(parameter.shape, generator=random) * (0.3 if norm else 0.2) + (1.0 if norm else 0.0)
            values = values.to(torch.bfloat16).float()
            if not norm and "embed" not in layer and not is_skipped(layer, quantization):
                tensors, values = make(values, random)
                state.update({f"{layer}.{key}": value for key, value in tensors.items()})
            else:
                state[parameter_name] = values.to(torch.bfloat16)
            parameter.copy_(values)
        ids = torch.randint(3, BASE["vocab_size"], (1, 60), generator=random)
        logprobs = torch.log_softmax(model(ids).logits[0].double(), dim=-1).float()
    directory = output / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    save_file({k: v.contiguous() for k, v in state.items()}, directory / "model.safetensors")
    written = dict(BASE, architectures=["LlamaForCausalLM"], model_type="llama", torch_dtype="bfloat16",
                   hidden_act="silu", quantization_config=quantization)
    (directory / "config.json").write_text(json.dumps(written, indent=1) + "\n")
    save_file({"ids": ids[0].float(), "logprobs": logprobs}, directory / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    output, cases = arguments.output, arguments.cases
    for seed, (name, case) in enumerate(CASES.items()):
        if not cases or name in cases:
            make_model(name, case, seed, output)


if __name__ == "__main__":
    main()
