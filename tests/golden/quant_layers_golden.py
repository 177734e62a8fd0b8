# Packages: safetensors, torch (requirements.txt), and the libraries that define the formats: compressed-tensors 0.20.0,
# bitsandbytes 0.50.2, hqq 0.2.8.post1, nvidia-modelopt 0.47.0 (with omegaconf 2.3.0 and pulp).
"""Makes tests/data/quant/layers: for each quantization scheme, the tensors of a layer named "layer" as the scheme's
library stores them, and its weights as the library dequantizes them in float32 ("expected"). cases.json has the
quantization_config of each.

    python tests/golden/quant_layers_golden.py [--output DIRECTORY]
"""
import argparse
import json
import os
import pathlib

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # some of the libraries' functions would be compiled, which takes minutes

import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "quant" / "layers"
SHAPE = (24, 96)


def compressed(format_name, packed=True, **weights):
    """A layer that the compressor of compressed-tensors wrote. Scales are random, because it does not choose them."""

    def make(weight):
        from compressed_tensors.compressors.mxfp4.base import MXFP4PackedCompressor
        from compressed_tensors.compressors.naive_quantized.base import NaiveQuantizationCompressor
        from compressed_tensors.compressors.nvfp4.base import NVFP4PackedCompressor
        from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
        from compressed_tensors.compressors.pack_quantized.base import PackedQuantizationCompressor
        from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
        from compressed_tensors.quantization.lifecycle.forward import dequantize

        args = QuantizationArgs(**weights)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        size = args.group_size or SHAPE[1]
        groups = weight.reshape(SHAPE[0], -1, size)
        largest = groups.abs().amax(-1)
        if format_name == "nvfp4-pack-quantized":
            state = {"weight_global_scale": torch.tensor([448 * 6 / weight.abs().max()])}
            scale = (largest / 6 * state["weight_global_scale"]).to(torch.float8_e4m3fn).float()
            compressor = NVFP4PackedCompressor
        elif format_name == "mxfp4-pack-quantized":
            state, scale = {}, 2.0 ** torch.floor(torch.log2(largest / 4))
            compressor = MXFP4PackedCompressor
        else:
            top = 2 ** (args.num_bits - 1) - 1
            low, high = groups.amin(-1), groups.amax(-1)
            state = {"weight_zero_point": torch.zeros_like(low, dtype=torch.int8)}
            scale = largest / (top + 0.5)
            if not args.symmetric:
                scale = (high - low) / (2 * top + 1)
                state["weight_zero_point"] = (torch.round(-low / scale) - top - 1).clamp(-top - 1, top).to(torch.int8)
            compressor = PackedQuantizationCompressor if packed else NaiveQuantizationCompressor
        state = {"weight": weight, "weight_scale": scale, **state}
        stored = compressor.compress(state, scheme)
        if "fp4" in format_name:
            # decompress() rounds to bfloat16.
            codes = unpack_fp4_from_uint8(stored["weight_packed"], *SHAPE, dtype=torch.float32)
            scale = stored["weight_scale"]
            scale = scale.float() if scale.dtype != torch.uint8 else 2.0 ** (scale.float() - 127)
            expected = dequantize(codes, scale, args=args, global_scale=stored.get("weight_global_scale"),
                                  dtype=torch.float32)
        else:
            expected = compressor.decompress(stored, scheme)["weight"]
        return {k: v for k, v in stored.items() if v is not None}, expected

    config = dict(quant_method="compressed-tensors", format=format_name, ignore=[],
                  config_groups={"group_0": dict(targets=["Linear"], weights=weights)})
    return make, config


def float_weights(strategy, group_size):
    return dict(num_bits=4, type="float", symmetric=True, strategy=strategy, group_size=group_size, dynamic=False)


def int_weights(bits, symmetric, group_size=None):
    return dict(num_bits=bits, type="int", symmetric=symmetric, strategy="group" if group_size else "channel",
                group_size=group_size, dynamic=False)


def modelopt():
    def make(weight):
        from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor

        quantized, scale, scale_2 = NVFP4QTensor.quantize(weight, 16)
        expected = quantized.dequantize(dtype=torch.float32, scale=scale, double_scale=scale_2, block_sizes={-1: 16})
        return {"weight": quantized._quantized_data, "weight_scale": scale, "weight_scale_2": scale_2,
                "input_scale": torch.tensor(0.5)}, expected

    return make, dict(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head"])


def bitsandbytes(kind, nested=False, block_size=64):
    def make(weight):
        import bitsandbytes.functional

        if kind == "int8":
            codes, scales, _ = bitsandbytes.functional.int8_vectorwise_quant(weight.half())
            return ({"weight": codes, "SCB": scales, "weight_format": torch.tensor(0, dtype=torch.uint8)},
                    bitsandbytes.functional.int8_vectorwise_dequant(codes, scales))
        # The matrix is passed as one row: if blocks span rows, the CPU's dequantize_4bit uses the wrong scales (0.50.2).
        codes, state = bitsandbytes.functional.quantize_4bit(weight.reshape(1, -1), quant_type=kind,
                                                             compress_statistics=nested, blocksize=block_size)
        expected = bitsandbytes.functional.dequantize_4bit(codes, state).reshape(weight.shape)
        state.shape = weight.shape
        tensors = {"weight": codes, **{"weight." + k: v for k, v in state.as_dict(packed=True).items()}}
        return tensors, expected

    four = kind != "int8"
    config = dict(quant_method="bitsandbytes", load_in_4bit=four, load_in_8bit=not four, llm_int8_skip_modules=None)
    if four:
        config.update(bnb_4bit_quant_type=kind, bnb_4bit_use_double_quant=nested, bnb_4bit_quant_storage="uint8")
    return make, config


def hqq(bits, group_size):
    params = dict(nbits=bits, channel_wise=True, group_size=group_size, optimize=True, round_zero=False, axis=1,
                  view_as_float=False)

    def make(weight):
        from hqq.core.quantize import Quantizer

        options = {k: v for k, v in params.items()}
        codes, meta = Quantizer.quantize(weight, device="cpu", compute_dtype=torch.float32, **options)
        return {"W_q": codes, "scale": meta["scale"], "zero": meta["zero"]}, Quantizer.dequantize(codes, meta)

    return make, dict(quant_method="hqq", skip_modules=["lm_head"],
                      quant_config=dict(weight_quant_params=params, scale_quant_params=None, zero_quant_params=None))


CASES = {
    "nvfp4": compressed("nvfp4-pack-quantized", **float_weights("tensor_group", 16)),
    "mxfp4": compressed("mxfp4-pack-quantized", **float_weights("group", 32)),
    "modelopt_nvfp4": modelopt(),
    "w4a16": compressed("pack-quantized", **int_weights(4, True, 32)),
    "w4a16_asymmetric": compressed("pack-quantized", **int_weights(4, False, 32)),
    "w4a16_channel": compressed("pack-quantized", **int_weights(4, True)),
    "w4a16_channel_asymmetric": compressed("pack-quantized", **int_weights(4, False)),
    "w8a16_asymmetric": compressed("pack-quantized", **int_weights(8, False, 32)),
    "w8a8": compressed("int-quantized", packed=False, **int_weights(8, True)),
    "w8a8_asymmetric": compressed("int-quantized", packed=False, **int_weights(8, False)),
    "w8a8_groups_asymmetric": compressed("int-quantized", packed=False, **int_weights(8, False, 32)),
    "nf4": bitsandbytes("nf4"),
    "nf4_nested": bitsandbytes("nf4", nested=True),
    "nf4_blocks_of_128": bitsandbytes("nf4", block_size=128),
    "fp4": bitsandbytes("fp4"),
    "fp4_nested": bitsandbytes("fp4", nested=True),
    "int8": bitsandbytes("int8"),
    "hqq_8bit": hqq(8, 32),
    "hqq_4bit": hqq(4, 32),
    "hqq_4bit_rows": hqq(4, None),
    "hqq_2bit": hqq(2, 16),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for seed, (name, (make, _)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        weight = torch.randn(SHAPE) * torch.rand(SHAPE[0], 1) * 0.2
        tensors, expected = make(weight)
        state = {f"layer.{key}": value.detach().clone().contiguous() for key, value in tensors.items()}
        error = (expected - weight).abs().max() / weight.abs().max()
        print(f"{name}: error {error:.3f}", {k: (str(v.dtype)[6:], list(v.shape)) for k, v in tensors.items()})
        save_file({"expected": expected.detach().float().clone().contiguous(), **state}, output / f"{name}.safetensors")
    (output / "cases.json").write_text(json.dumps({k: config for k, (_, config) in CASES.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
