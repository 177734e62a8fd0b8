# Packages: safetensors, torch, transformers (requirements.txt).
"""Makes tests/data/models: tiny random checkpoints of every decoder family, one for each config switch that changes
the arithmetic. Each comes with the results of Hugging Face transformers: the float32 logits of one sequence, the greedy
tokens of eight prompts, and, in bfloat16, the root mean square error and the best token at every position.

    python tests/golden/models_golden.py [--output DIRECTORY] [CASE...]

A seed is used only if float32 rounding cannot swap the two best logits of any greedy step, and if transformers in
bfloat16 and in float32 agree on the best token at 98.5 % of the positions.
"""
import argparse
import json
import pathlib
import shutil

import torch
from safetensors.torch import load_file, save_file

from model_cases import CASES, make_model, round_to_mxfp4, to_mxfp4

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "models"
LENGTHS = [1, 4, 9, 15, 16, 17, 31, 50]
NUM_GREEDY = 64
NUM_LOGITS = 72  # number of positions of the last sequence whose logits are stored


def greedy(model, prompt):
    """Returns the greedy tokens, and the smallest gap between the two best logits of a step, in standard deviations of
    that step's logits."""
    ids, gap = list(prompt), float("inf")
    for _ in range(NUM_GREEDY):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1].to(torch.float64)
        best = torch.topk(logits, 2)
        gap = min(gap, float((best.values[0] - best.values[1]) / logits.std()))
        ids.append(int(best.indices[0]))
    return ids[len(prompt):], gap


def old_config(config):
    """Returns the config as transformers wrote it before version 5."""
    config["torch_dtype"] = config.pop("dtype")
    if config["model_type"] == "gemma4_text":
        return gemma4_hub_config(config)
    if config["model_type"] == "gemma3n_text":
        layer_types = None
    else:
        layer_types = config.pop("layer_types", None)
    if config["model_type"] == "granitemoehybrid":
        config["layer_types"] = [{"full_attention": "attention"}.get(name, "mamba") for name in layer_types]
    if config["model_type"] == "nemotron_h":
        letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
        config["hybrid_override_pattern"] = "".join(letters[name] for name in config.pop("layers_block_type"))
        config["num_hidden_layers"] = len(config["hybrid_override_pattern"])
    if config["model_type"].startswith("lfm2_moe"):
        config["layer_types"] = layer_types
    if "time_step_limit" in config:
        config["time_step_limit"] = [0.0, float("inf")]
    # Without a window, transformers cannot make the list.
    if config["model_type"] == "exaone4" and config["sliding_window"] is None:
        config["layer_types"] = layer_types
    rope = config.pop("rope_parameters", None)
    if not rope:
        return config
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if rope.get("rope_type", "default") != "default":
        config["rope_scaling"] = rope
    if config["model_type"] == "gpt_neox":
        config["rotary_emb_base"] = config.pop("rope_theta")
        config["rotary_pct"] = config.pop("partial_rotary_factor")
    return config


def gemma4_hub_config(config):
    """Replaces per_layer_config, which transformers 5 writes, by the fields of published files."""
    full = next(iter(config.pop("per_layer_config").values()), {})
    config["global_head_dim"] = full.get("head_dim", config["head_dim"])
    config["num_global_key_value_heads"] = full.get("num_key_value_heads", config["num_key_value_heads"])
    return config


def restyle(directory, options, overrides):
    """Converts the output of save_pretrained() to the layout that another program or version writes."""
    style = options.get("style", "new")
    config = json.loads((directory / "config.json").read_text())
    tensors = load_file(directory / "model.safetensors")
    if style == "old":
        config = old_config(config)
        for key in ("sliding_window_pattern", "full_attention_interval"):
            if key in overrides:
                config[key] = overrides[key]
        if "rope_type" in options:
            config["rope_scaling"] = {"type": options["rope_type"],
                                      **{k: v for k, v in config["rope_scaling"].items() if k.endswith("_factor")}}
        if config["model_type"] == "gpt2":
            tensors = {k.removeprefix("transformer."): v for k, v in tensors.items()}
        if config["model_type"] == "opt":
            tensors = {k.removeprefix("model."): v for k, v in tensors.items()}
    elif style == "stacked_experts":
        for i in range(config["num_hidden_layers"]):
            prefix = f"model.layers.{i}.mlp.experts."
            experts = [[tensors.pop(f"{prefix}{e}.{p}_proj.weight") for p in ("gate", "up", "down")]
                       for e in range(config["num_experts"])]
            tensors[prefix + "gate_up_proj"] = torch.stack([torch.cat([gate, up]) for gate, up, _ in experts])
            tensors[prefix + "down_proj"] = torch.stack([down for _, _, down in experts])
    elif style == "qwen_vision":
        whole = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
                 "tie_word_embeddings": False, "text_config": config, "vision_config": {"hidden_size": 8}}
        config.pop("architectures")
        tensors = {k.replace("model.", "model.language_model.", 1): v for k, v in tensors.items()}
        tensors["model.visual.patch.weight"] = torch.ones(2, 2, dtype=torch.bfloat16)
        tensors["mtp.norm.weight"] = torch.ones(2, dtype=torch.bfloat16)
        config = whole
    elif style == "qwen_vl_old":
        text = config.pop("text_config")
        text.pop("layer_types", None)
        config["torch_dtype"] = config.pop("dtype")
        rope = text.pop("rope_parameters")
        text["rope_theta"] = rope.pop("rope_theta")
        if config["model_type"] == "qwen3_vl_moe":
            # The published checkpoints have the experts' matrices transposed.
            tensors = {k: v.transpose(1, 2) if ".experts." in k else v for k, v in tensors.items()}
        if config["model_type"] in ("qwen3_vl", "qwen3_vl_moe"):
            text["rope_scaling"] = {**rope, "mrope_interleaved": True}
            config["text_config"] = text
        else:
            # All fields are in the outer config.
            text["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
            config = {**text, **config}
            tensors = {k.replace("model.language_model.", "model.").replace("model.visual.", "visual."): v
                       for k, v in tensors.items()}
    elif style == "mxfp4":
        config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
        for name in [n for n in tensors if n.endswith(("experts.gate_up_proj", "experts.down_proj"))]:
            blocks, scales, _ = to_mxfp4(tensors.pop(name).transpose(1, 2))
            tensors[name + "_blocks"], tensors[name + "_scales"] = blocks, scales
    elif style in ("vision", "vision_old", "llava", "mistral3"):
        model_type = style if style in ("llava", "mistral3") else config["model_type"].removesuffix("_text")
        outer = model_type.capitalize() + "ForConditionalGeneration"
        text = old_config(config) if style == "vision_old" else config
        whole = {"architectures": [outer], "model_type": model_type,
                 "eos_token_id": text.pop("eos_token_id"), "text_config": text, "vision_config": {"hidden_size": 8}}
        for name in ("dtype", "torch_dtype"):
            if name in text:
                whole[name] = text.pop(name)
        text.pop("architectures")
        if style == "vision_old":
            text.pop("tie_word_embeddings", None)
            tensors = {"language_model." + k: v for k, v in tensors.items()}
        else:
            tensors = {k.replace("model.", "model.language_model.", 1): v for k, v in tensors.items()}
        tensors["vision_tower.patch.weight"] = torch.ones(2, 2, dtype=torch.bfloat16)
        config = whole
    save_file({k: v.contiguous() for k, v in tensors.items()}, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def make(name, seed, output):
    """Writes the case. Returns False and writes nothing if the seed does not meet the conditions at the top of the
    file."""
    architecture, overrides, options = CASES[name]
    model = make_model(architecture, overrides, seed)
    if options.get("style") == "mxfp4":
        round_to_mxfp4(model)
    torch.manual_seed(seed + 1)
    prompts = [torch.randint(3, 64, (max(n, options.get("min_prompt", 1)),)).tolist() for n in LENGTHS]
    with torch.no_grad():
        outputs, gaps = zip(*(greedy(model, prompt) for prompt in prompts))
        if min(gaps) < 2e-4:
            return False
        sequences = [torch.tensor([p + o]) for p, o in zip(prompts, outputs)]
        logits = model(sequences[-1][:, :NUM_LOGITS], use_cache=False).logits[0].to(torch.float32)
        exact_top1 = [model(s, use_cache=False).logits[0].argmax(-1) for s in sequences]
        model.to(torch.bfloat16)
        bfloat16_logits = model(sequences[-1][:, :NUM_LOGITS], use_cache=False).logits[0].to(torch.float64)
        difference = torch.log_softmax(bfloat16_logits, -1) - torch.log_softmax(logits.to(torch.float64), -1)
        error = difference.square().mean().sqrt()
        top1 = [model(s, use_cache=False).logits[0].argmax(-1) for s in sequences]
    if (torch.cat(top1) == torch.cat(exact_top1)).double().mean() < 0.985:
        return False
    directory = output / name
    shutil.rmtree(directory, ignore_errors=True)
    model.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    restyle(directory, options, overrides)
    save_file({"logits": logits.contiguous()}, directory / "golden.safetensors")
    golden = {"seed": seed, "prompts": prompts, "outputs": outputs, "bfloat16_top1": [t.tolist() for t in top1],
              "bfloat16_error": float(error)}
    if "max_model_len" in options:
        golden["max_model_len"] = options["max_model_len"]
    (directory / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        first_seed = CASES[name][2].get("first_seed", 0)
        seed = next(seed for seed in range(first_seed, 1000) if make(name, seed, arguments.output))
        size = sum(f.stat().st_size for f in (arguments.output / name).iterdir())
        print(f"{name}: seed {seed}, {size} bytes", flush=True)


if __name__ == "__main__":
    main()
