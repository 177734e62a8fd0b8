# Packages: safetensors, torch, transformers (requirements.txt).
"""Makes tests/data/llama: a tiny random Llama checkpoint for each config switch that changes the arithmetic. Each
comes with the float32 log-probabilities of Hugging Face transformers and the largest error of transformers in bfloat16.

    python tests/golden/llama_golden.py [--output DIRECTORY]
"""
import argparse
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "llama"

BASE = dict(vocab_size=64, hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
            tie_word_embeddings=False)

CASES = {
    "plain": {},
    "multi_head": dict(num_key_value_heads=4),
    "multi_query": dict(num_key_value_heads=1),
    "tied": dict(tie_word_embeddings=True),
    "tied_lm_head_only": dict(tie_word_embeddings=True),
    "biases": dict(attention_bias=True, mlp_bias=True),
    "head_dim": dict(head_dim=20),
    "theta": dict(rope_theta=500000.0),
    "rope_linear": dict(rope_scaling=dict(rope_type="linear", factor=2.5)),
    "rope_dynamic_within": dict(rope_scaling=dict(rope_type="dynamic", factor=2.0)),
    "rope_llama3": dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                          original_max_position_embeddings=16)),
    "rope_yarn": dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
    "rope_yarn_mscale": dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16,
                                               beta_fast=16.0, beta_slow=2.0, mscale=0.707, mscale_all_dim=0.9)),
    "rope_yarn_attention_factor": dict(rope_scaling=dict(rope_type="yarn", factor=4.0, attention_factor=1.3,
                                                         original_max_position_embeddings=16)),
    "sliding_window": dict(sliding_window=9),
}


def make(name, overrides, seed, output):
    torch.manual_seed(seed)
    window = "sliding_window" in overrides
    config_class, model_class = (MistralConfig, MistralForCausalLM) if window else (LlamaConfig, LlamaForCausalLM)
    config = config_class(**{**BASE, **overrides})
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            scale = 0.3 if "norm" in parameter_name else 0.25
            values = torch.randn_like(parameter) * scale + (1.0 if "norm" in parameter_name else 0.0)
            # bfloat16 represents these values exactly, so small files are enough.
            parameter.copy_(values.to(torch.bfloat16).to(torch.float32))
    ids = torch.randint(3, BASE["vocab_size"], (1, 60))
    with torch.no_grad():
        logprobs = torch.log_softmax(model(ids).logits[0].to(torch.float64), dim=-1).to(torch.float32)

        bfloat16_logprobs = torch.log_softmax(model.to(torch.bfloat16)(ids).logits[0].to(torch.float64), dim=-1)
        bfloat16_error = (bfloat16_logprobs - logprobs).abs().max().reshape(1).to(torch.float32)
        model.to(torch.float32)

    directory = output / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    state = {k: v.to(torch.bfloat16).contiguous() for k, v in model.state_dict().items() if "rotary" not in k}
    if overrides.get("tie_word_embeddings"):
        embedding = state.pop("model.embed_tokens.weight")
        state.pop("lm_head.weight", None)
        state["lm_head.weight" if name == "tied_lm_head_only" else "model.embed_tokens.weight"] = embedding
    save_file(state, directory / "model.safetensors")
    text = json.loads(config.to_json_string())
    written = {k: text[k] for k in BASE if k in text}
    written["architectures"] = [model_class.__name__]
    written["model_type"] = config.model_type
    written["torch_dtype"] = "bfloat16"
    written["hidden_act"] = "silu"
    for key in ("attention_bias", "mlp_bias", "head_dim", "sliding_window", "rope_scaling", "rope_theta"):
        if key in overrides:
            written[key] = overrides[key]
    (directory / "config.json").write_text(json.dumps(written, indent=1) + "\n")
    save_file({"ids": ids[0].to(torch.float32), "logprobs": logprobs, "bfloat16_error": bfloat16_error}, directory / "golden.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    for seed, (name, overrides) in enumerate(CASES.items()):
        make(name, overrides, seed, output)


if __name__ == "__main__":
    main()
