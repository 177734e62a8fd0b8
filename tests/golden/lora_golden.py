# Packages: gguf, peft, safetensors, torch, transformers (requirements.txt).
"""Makes tests/data/lora: LoRA adapters for the tiny models of tests/data/models, one for each option of PEFT that changes
the arithmetic, with random matrices. Each comes with the float32 logits of PEFT for one sequence.

    python tests/golden/lora_golden.py [--output DIRECTORY] [CASE...]

The logits are those of the unmerged adapter. The script checks that the merged adapter gives the same ones, except for
rounding, and that they differ from those of the base model.
"""
import argparse
import json
import pathlib
import shutil

import gguf
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
NUM_LOGITS = 72

# Name: base model, arguments of LoraConfig.
CASES = {
    "all_linear": ("llama", {"r": 4, "lora_alpha": 6, "target_modules": "all-linear"}),
    # Q8_0 in the GGUF file. The PEFT directory has the same values.
    "quantized_gguf": ("llama", {"r": 32, "lora_alpha": 24, "target_modules": ["q_proj", "k_proj", "o_proj", "up_proj"]}),
    "attention": ("llama", {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}),
    "rslora": ("llama", {"r": 3, "lora_alpha": 5, "use_rslora": True, "target_modules": ["k_proj", "o_proj", "up_proj"]}),
    "patterns": ("llama", {"r": 4, "lora_alpha": 8, "target_modules": "all-linear",
                           "rank_pattern": {"q_proj": 2, r".*\.1\.mlp\..*": 6},
                           "alpha_pattern": {"layers.0.self_attn.k_proj": 3, "(up|down)_proj": 12, "up_proj": 1}}),
    "regex": ("llama", {"r": 2, "lora_alpha": 4, "target_modules": r".*\.1\.mlp\.(up|down)_proj"}),
    "layers": ("llama", {"r": 4, "lora_alpha": 4, "target_modules": ["gate_proj", "q_proj"], "layers_to_transform": [1],
                         "layers_pattern": "layers"}),
    "embeddings": ("llama", {"r": 4, "lora_alpha": 8, "target_modules": ["embed_tokens", "lm_head", "v_proj"]}),
    "lora_bias": ("llama", {"r": 4, "lora_alpha": 8, "lora_bias": True, "target_modules": ["q_proj", "down_proj"]}),
    "biases_of_adapted": ("qwen2", {"r": 4, "lora_alpha": 8, "bias": "lora_only",
                                    "target_modules": ["q_proj", "k_proj", "up_proj"]}),
    "biases_of_all": ("qwen2", {"r": 4, "lora_alpha": 8, "bias": "all", "target_modules": ["v_proj", "down_proj"]}),
    "transposed": ("gpt2", {"r": 4, "lora_alpha": 8, "fan_in_fan_out": True,
                            "target_modules": ["c_attn", "c_fc", "c_proj"]}),
    "dora": ("llama", {"r": 4, "lora_alpha": 8, "use_dora": True, "target_modules": "all-linear"}),
    "dora_with_biases": ("qwen2", {"r": 4, "lora_alpha": 6, "use_dora": True, "bias": "lora_only",
                                   "target_modules": ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]}),
    "dora_transposed": ("gpt2", {"r": 4, "lora_alpha": 8, "use_dora": True, "fan_in_fan_out": True,
                                 "target_modules": ["c_attn", "c_proj"]}),
    "fused": ("phi3", {"r": 4, "lora_alpha": 8, "target_modules": ["qkv_proj", "gate_up_proj", "o_proj"]}),
    "fused_by_head": ("falcon_11b", {"r": 4, "lora_alpha": 8, "target_modules": ["query_key_value", "dense"]}),
    "scaled_embedding": ("gemma2", {"r": 4, "lora_alpha": 8, "target_modules": ["embed_tokens", "k_proj", "gate_proj"]}),
}


def set_random(model, seed):
    """Fills the trainable parameters, among them the biases, with random values."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "magnitude" in name:
            parameter.data = parameter * (1 + 0.3 * torch.randn(parameter.shape, generator=generator))
        elif "lora_" in name or (parameter.requires_grad and name.endswith("bias")):
            scale = 1.0 if "lora_A" in name or "embedding_A" in name else 0.3
            parameter.data = torch.randn(parameter.shape, generator=generator) * scale * parameter.shape[-1] ** -0.5


def quantize(values):
    """Returns the Q8_0 blocks of a matrix, [rows, bytes]."""
    return gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)


def round_to_blocks(model):
    """Rounds the matrices of the adapter to values of Q8_0."""
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            blocks = quantize(parameter.detach().numpy())
            values = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0)
            assert (quantize(values) == blocks).all(), name
            parameter.data = torch.from_numpy(values)


def load_base(base):
    model = transformers.AutoModelForCausalLM.from_pretrained(DATA / "models" / base, dtype=torch.float32,
                                                              attn_implementation="eager")
    return model.eval()


def permute(weight, num_heads):
    """Reorders the rows of a matrix of queries or keys as llama.cpp's converter does for Llama."""
    return weight.reshape(num_heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(directory, config, alpha, path, is_quantized):
    """Writes a PEFT adapter of a Llama as llama.cpp's convert_lora_to_gguf.py does, in float32 or Q8_0."""
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(alpha))
    for key, tensor in sorted(load_file(directory / "adapter_model.safetensors").items()):
        module, part = key.removeprefix("base_model.model.model.layers.").rsplit(".lora_", 1)
        layer, module = module.split(".", 1)
        values = tensor.to(torch.float32).numpy()
        if part == "B.weight" and names[module] in heads:
            values = permute(values, heads[names[module]])
        tensor_name = f"blk.{layer}.{names[module]}.weight.lora_{part[0].lower()}"
        if is_quantized:
            writer.add_tensor(tensor_name, quantize(values), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(tensor_name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(name, output):
    base, options = CASES[name]
    directory = output / name
    shutil.rmtree(directory, ignore_errors=True)
    golden = json.loads((DATA / "models" / base / "golden.json").read_text())
    ids = torch.tensor([(golden["prompts"][-1] + golden["outputs"][-1])[:NUM_LOGITS]])
    adapted = peft.get_peft_model(load_base(base), peft.LoraConfig(task_type="CAUSAL_LM", **options))
    with torch.no_grad():
        set_random(adapted, len(name))
        if name == "quantized_gguf":
            round_to_blocks(adapted)
    adapted.save_pretrained(directory)
    config = json.loads((directory / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = base
    if isinstance(config["target_modules"], list):  # PEFT writes a set, whose order changes
        config["target_modules"].sort()
    (directory / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (directory / "README.md").unlink(missing_ok=True)
    if name in ("all_linear", "quantized_gguf"):
        write_gguf(directory, adapted.config, options["lora_alpha"], directory / "adapter.gguf", name == "quantized_gguf")
    # PEFT sorts the patterns when it saves them, and uses the first one that matches, so only the saved adapter counts.
    model = load_base(base)
    with torch.no_grad():
        base_logits = model(ids, use_cache=False).logits[0]
        adapted = peft.PeftModel.from_pretrained(model, directory)
        logits = adapted(ids, use_cache=False).logits[0].to(torch.float32)
        # PEFT cannot merge the bias of B into a layer without a bias, nor an embedding that is also the output projection.
        can_merge = "lora_bias" not in options and name != "scaled_embedding"
        merged = adapted.merge_and_unload()(ids, use_cache=False).logits[0] if can_merge else logits
    assert (logits - base_logits).abs().max() > 0.05 * base_logits.std(), name
    assert (logits - merged).abs().max() < 1e-4 * logits.std(), (name, (logits - merged).abs().max())
    save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=DATA / "lora", metavar="DIRECTORY")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        make(name, arguments.output)
        size = sum(f.stat().st_size for f in (arguments.output / name).iterdir())
        print(f"{name}: {size} bytes", flush=True)


if __name__ == "__main__":
    main()
