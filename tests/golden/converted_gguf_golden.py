# Packages: gguf, safetensors, torch, transformers (requirements.txt).
"""Makes directories of tests/data/gguf with llama.cpp's own converter: tiny random checkpoints, each with the float32
log-probabilities that Hugging Face transformers (or bailing_moe.py) computes for them. The checkpoints of the cases
"nvfp4..." have the matrices of all layers in NVFP4, as NVIDIA's Model Optimizer writes them.

    python tests/golden/converted_gguf_golden.py --llama-cpp DIRECTORY [--output DIRECTORY] [CASE...]

DIRECTORY contains convert_hf_to_gguf.py, as in the source package of llama-cpp-python 0.3.36 (vendor/llama.cpp). The
vocabulary of the files is that of gguf_golden.py. A seed is used only if the model does not amplify rounding errors: the
results in float32 and in float64 differ by at most 1e-5 of the spread of the logits.
"""
import argparse
import json
import pathlib
import runpy
import shutil
import sys
import tempfile
import types

import torch
from safetensors.torch import load_file, save_file

import quant_models_golden
from model_cases import make_model

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "gguf"
LENGTH = 60

SLIDING, FULL = "sliding_attention", "full_attention"
GEMMA3N = dict(sliding_window=9, final_logit_softcapping=3.0, altup_num_inputs=4, tie_word_embeddings=True)

# name -> (architecture, config overrides, fields that only the config.json of published models has)
CASES = {
    "bailingmoe": ("BailingMoeForCausalLM", dict(num_shared_experts=2), {}),
    "bailingmoe2": ("BailingMoeV2ForCausalLM", dict(routed_scaling_factor=2.5), {"num_nextn_predict_layers": 1}),
    "bailingmoe2_no_groups": ("BailingMoeV2ForCausalLM", dict(
        use_qk_norm=False, n_group=1, topk_group=1, num_shared_experts=2, first_k_dense_replace=0, use_qkv_bias=True,
        use_bias=True, partial_rotary_factor=1.0, hidden_size=24), {}),
    "gemma3n": ("Gemma3nForCausalLM", dict(
        GEMMA3N, activation_sparsity_pattern=[0.95, 0.0, 0.3, 0.0, 0.7], num_kv_shared_layers=2, num_hidden_layers=5,
        layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL], altup_active_idx=1), {}),
    "gemma3n_biases": ("Gemma3nForCausalLM", dict(
        GEMMA3N, activation_sparsity_pattern=[0.0, 0.0, 0.0], layer_types=[FULL, SLIDING, FULL], attention_bias=True,
        rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=5e4),
                             sliding_attention=dict(rope_type="default", rope_theta=300.0))), {}),
    "qwen2vl": ("Qwen2VLForConditionalGeneration", dict(tie_word_embeddings=True), {}),
    "qwen3vlmoe": ("Qwen3VLMoeForConditionalGeneration", {}, {}),
    "qwen3vl": ("Qwen3VLForConditionalGeneration", {}, {}),
    "gptneox": ("GPTNeoXForCausalLM", dict(hidden_act="gelu", rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)), {"rotary_pct": 0.5}),
    "nvfp4_llama": ("LlamaForCausalLM", dict(hidden_size=64, intermediate_size=128), {}),
    "nvfp4_qwen3moe": ("Qwen3MoeForCausalLM", dict(
        hidden_size=64, head_dim=16, moe_intermediate_size=64, norm_topk_prob=True, num_experts_per_tok=5), {}),
}


def convert(llama_cpp, path, out, extra):
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]
    import conversion.base
    import gguf_golden

    def set_vocab(self):
        gguf_golden.write_vocabulary(self.gguf_writer, types.SimpleNamespace(vocab_size=self.hparams["vocab_size"]))

    # The converter's classes are made when an architecture is looked up. Those of all families call this function.
    conversion.base.TextModel._set_vocab_gpt2 = set_vocab
    # The converter reads config.json with transformers, which replaces some fields of published files.
    load_hparams = conversion.base.ModelBase.load_hparams
    conversion.base.ModelBase.load_hparams = staticmethod(
        lambda *arguments, **named: {**load_hparams(*arguments, **named), **extra})
    sys.argv = ["convert_hf_to_gguf.py", str(path), "--outtype", "bf16", "--outfile", str(out)]
    runpy.run_path(str(llama_cpp / "convert_hf_to_gguf.py"), run_name="__main__")


def quantize(path, model):
    """Replaces the matrices of the checkpoint in `path` by NVFP4 codes, and those of the model by their values."""
    make_tensors, config = quant_models_golden.float4("modelopt")
    tensors, values = {}, {}
    for name, tensor in load_file(path / "model.safetensors").items():
        values[name] = tensor
        if not name.endswith("_proj.weight"):
            tensors[name] = tensor
            continue
        stored, values[name] = make_tensors(tensor.float(), None)
        tensors.update({name.removesuffix("weight") + suffix: value for suffix, value in stored.items()})
    with tempfile.TemporaryDirectory() as exact:
        shutil.copy(path / "config.json", exact)
        save_file({name: tensor.float().contiguous() for name, tensor in values.items()}, exact + "/model.safetensors")
        model = type(model).from_pretrained(
            exact, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager").eval()
    save_file(tensors, path / "model.safetensors")
    return model, {"quantization_config": config}


def logprobs_of(model, ids):
    with torch.no_grad():
        return torch.log_softmax(model(ids, use_cache=False).logits[0].double(), dim=-1)


def make(name, llama_cpp, output):
    architecture, overrides, extra = CASES[name]
    seed = list(CASES).index(name)
    while True:
        model = make_model(architecture, overrides, seed)
        with tempfile.TemporaryDirectory() as temporary:
            path = pathlib.Path(temporary) / name  # the converter writes this name to the file
            make_model(architecture, overrides, seed).to(torch.bfloat16).save_pretrained(path)
            fields = dict(extra)
            if name.startswith("nvfp4"):
                model, quantization = quantize(path, model)
                fields.update(quantization)
            ids = torch.randint(3, model.config.get_text_config().vocab_size, (1, LENGTH))
            logprobs = logprobs_of(model, ids)
            exact = logprobs_of(model.double(), ids)
            if (logprobs - exact).abs().max() > 1e-5 * exact.std(-1).min():
                seed += 100
                continue
            print(f"{name}: seed {seed}")
            directory = output / name
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            save_file({"ids": ids[0].float(), "logprobs": logprobs.float().contiguous()},
                      directory / "golden.safetensors")
            if architecture == "Qwen3VLMoeForConditionalGeneration":
                # The published files, which the converter expects, have the experts' matrices transposed.
                tensors = load_file(path / "model.safetensors")
                save_file({k: (v.transpose(1, 2) if ".experts." in k else v).contiguous() for k, v in tensors.items()},
                          path / "model.safetensors")
            config = json.loads((path / "config.json").read_text())
            (path / "config.json").write_text(json.dumps({**config, **fields}))
            convert(llama_cpp, path, directory / "model.gguf", fields)
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-cpp", type=pathlib.Path, required=True, metavar="DIRECTORY")
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        make(name, arguments.llama_cpp, arguments.output)


if __name__ == "__main__":
    main()
