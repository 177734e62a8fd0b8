# Packages: gguf, numpy, safetensors, torch, transformers (requirements.txt).
"""Makes tests/data/gguf: tiny random models of each GGUF architecture that vllmcli reads, in the layout of llama.cpp's
converter, and the float32 log-probabilities that Hugging Face transformers computes for them.

    python tests/golden/gguf_golden.py [--output DIRECTORY] [CASE...]

Tensor names come from the gguf package's table. If a case names a quantization type, its matrices are quantized by
the package or made of random blocks, and transformers computes with the values that the package dequantizes.
"""
import argparse
import math
import pathlib
import shutil

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "gguf"
LENGTH = 60

SIZES = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=44, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
FACTORS = [1.0 + 0.25 * i for i in range(3)]
LONG_FACTORS = [1.5 + 0.5 * i for i in range(3)]

# name -> (GGUF architecture, config class, model class, overrides, options). Options:
#   "type"      type of all matrices; the default is BF16
#   "types"     type of some matrices, by the last part of their GGUF names
#   "split"     if greater than 1, write several files of 10 tensors each
#   "fuse_qkv"  write q, k and v as one matrix
#   "no_bias"   a list of "TENSOR" or "LAYER.TENSOR", whose biases are zero in the model and missing from the file
#   "shrink"    factor for the scales of random blocks
#   "mtp"       add a layer that predicts further tokens, which readers have to ignore
CASES = {
    "llama": ("llama", "LlamaConfig", "LlamaForCausalLM", {}, {}),
    "llama_biases": ("llama", "LlamaConfig", "LlamaForCausalLM",
                     dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True), {"type": Type.F32}),
    "llama_head_dim": ("llama", "LlamaConfig", "LlamaForCausalLM", dict(head_dim=12, rope_theta=5e5), {"type": Type.F16}),
    "llama_rope_freqs": ("llama", "LlamaConfig", "LlamaForCausalLM",
                         dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                original_max_position_embeddings=16)), {}),
    "llama_linear": ("llama", "LlamaConfig", "LlamaForCausalLM",
                     dict(rope_scaling=dict(rope_type="linear", factor=2.5)), {"split": 3}),
    "llama_yarn": ("llama", "LlamaConfig", "LlamaForCausalLM",
                   dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)), {}),
    "llama_fused": ("llama", "LlamaConfig", "LlamaForCausalLM", dict(attention_bias=True), {"fuse_qkv": True}),
    "llama_q8_0": ("llama", "LlamaConfig", "LlamaForCausalLM", dict(intermediate_size=64), {"type": Type.Q8_0}),
    "llama_q4_0": ("llama", "LlamaConfig", "LlamaForCausalLM", dict(intermediate_size=64), {"type": Type.Q4_0}),
    "llama_q5_1": ("llama", "LlamaConfig", "LlamaForCausalLM",
                   dict(intermediate_size=64, tie_word_embeddings=True), {"type": Type.Q5_1}),
    "llama_mixed": ("llama", "LlamaConfig", "LlamaForCausalLM",
                    dict(hidden_size=256, intermediate_size=256, num_hidden_layers=1),
                    {"types": {"token_embd": Type.Q6_K, "output": Type.Q8_0, "attn_q": Type.Q4_K, "attn_k": Type.Q6_K,
                               "attn_v": Type.Q5_K, "attn_output": Type.Q3_K, "ffn_gate": Type.Q2_K,
                               "ffn_up": Type.IQ4_NL, "ffn_down": Type.Q4_1}}),
    "mixtral": ("llama", "MixtralConfig", "MixtralForCausalLM",
                dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=20), {}),
    "mixtral_q8_0": ("llama", "MixtralConfig", "MixtralForCausalLM",
                     dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=32), {"type": Type.Q8_0}),
    "qwen2": ("qwen2", "Qwen2Config", "Qwen2ForCausalLM", {}, {}),
    "qwen2_tied": ("qwen2", "Qwen2Config", "Qwen2ForCausalLM", dict(tie_word_embeddings=True, rope_theta=1e6), {}),
    "qwen2_q5_0": ("qwen2", "Qwen2Config", "Qwen2ForCausalLM", dict(intermediate_size=64), {"type": Type.Q5_0}),
    "qwen2moe": ("qwen2moe", "Qwen2MoeConfig", "Qwen2MoeForCausalLM",
                 dict(num_experts=4, num_experts_per_tok=3, moe_intermediate_size=12,
                      shared_expert_intermediate_size=16), {}),
    "qwen3": ("qwen3", "Qwen3Config", "Qwen3ForCausalLM", dict(head_dim=12), {}),
    "qwen3_biases": ("qwen3", "Qwen3Config", "Qwen3ForCausalLM",
                     dict(head_dim=12, attention_bias=True, tie_word_embeddings=True), {}),
    "qwen3moe": ("qwen3moe", "Qwen3MoeConfig", "Qwen3MoeForCausalLM",
                 dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12, head_dim=12, norm_topk_prob=True),
                 {}),
    "gemma": ("gemma", "GemmaConfig", "GemmaForCausalLM", dict(head_dim=12, num_key_value_heads=1), {}),
    "gemma2": ("gemma2", "Gemma2Config", "Gemma2ForCausalLM",
               dict(head_dim=12, sliding_window=9, query_pre_attn_scalar=12, attn_logit_softcapping=2.0,
                    final_logit_softcapping=3.0, num_hidden_layers=3), {}),
    "gemma3": ("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM",
               dict(head_dim=12, hidden_size=24, num_hidden_layers=7, sliding_window=9, query_pre_attn_scalar=12,
                    rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=5e4),
                                         sliding_attention=dict(rope_type="default", rope_theta=1e4))), {}),
    "phi3": ("phi3", "Phi3Config", "Phi3ForCausalLM", dict(sliding_window=9), {}),
    "phi3_long": ("phi3", "Phi3Config", "Phi3ForCausalLM",
                  dict(original_max_position_embeddings=4, partial_rotary_factor=0.75,
                       rope_scaling=dict(rope_type="longrope", short_factor=FACTORS, long_factor=LONG_FACTORS)), {}),
    "gpt2": ("gpt2", "GPT2Config", "GPT2LMHeadModel", dict(num_key_value_heads=None, intermediate_size=None), {}),
    "olmo2": ("olmo2", "Olmo2Config", "Olmo2ForCausalLM", {}, {}),
    "granite": ("granite", "GraniteConfig", "GraniteForCausalLM",
                dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7, attention_multiplier=0.21,
                     tie_word_embeddings=True), {}),
    "smollm3": ("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", dict(num_hidden_layers=5), {}),
    "stablelm": ("stablelm", "StableLmConfig", "StableLmForCausalLM",
                 dict(use_parallel_residual=True, use_qkv_bias=True, partial_rotary_factor=0.5), {}),
    "stablelm_qk_norm": ("stablelm", "StableLmConfig", "StableLmForCausalLM",
                         dict(qk_layernorm=True, partial_rotary_factor=1.0), {}),
    "llama_qkv_biases": ("llama", "LlamaConfig", "LlamaForCausalLM", dict(attention_bias=True),
                         {"no_bias": ("attn_output",)}),
    "llama_some_biases": ("llama", "LlamaConfig", "LlamaForCausalLM",
                          dict(attention_bias=True, mlp_bias=True, num_hidden_layers=3),
                          {"no_bias": ("attn_k", "ffn_gate", "0.attn_q", "0.attn_v", "0.attn_output", "1.attn_q",
                                       "1.ffn_up", "2.ffn_down")}),
    # This Qwen2 uses transformers' Llama class, because only that class has a bias in attn_output.
    "qwen2_some_biases": ("qwen2", "LlamaConfig", "LlamaForCausalLM", dict(attention_bias=True),
                          {"no_bias": ("attn_k", "1.attn_output")}),
}

# Every supported type except F32, in the two families whose layers differ most. Blocks of 256 columns need rows of at
# least 256.
BLOCK_TYPES = (Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q2_K, Type.Q3_K, Type.Q4_K,
               Type.Q5_K, Type.Q6_K, Type.IQ4_NL, Type.IQ4_XS, Type.MXFP4)
for kind in BLOCK_TYPES:
    wide = gguf.GGML_QUANT_SIZES[kind][0] == 256
    sizes = (dict(hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_key_value_heads=1) if wide
             else dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2))
    # With larger Q2_K scales, the model would amplify rounding errors, in transformers too.
    options = {"type": kind, "shrink": 0.25 if kind == Type.Q2_K else 1.0}
    CASES["blocks_llama_" + kind.name] = ("llama", "LlamaConfig", "LlamaForCausalLM", sizes, options)
    CASES["blocks_gemma3_" + kind.name] = ("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM",
                                           dict(sizes, head_dim=64, sliding_window=9, query_pre_attn_scalar=64,
                                                rope_parameters=dict(full_attention=dict(rope_theta=1e4),
                                                                     sliding_attention=dict(rope_theta=1e4))),
                                           options)

# The position of a case is its seed. Append new cases here, so that the files of the other cases do not change.
CASES["arcee"] = ("arcee", "ArceeConfig", "ArceeForCausalLM", {}, {})
LINEAR_HEADS = dict(num_hidden_layers=3, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=6,
                    linear_key_head_dim=12, linear_value_head_dim=8,
                    layer_types=["linear_attention", "full_attention", "linear_attention"])
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=16)
CASES["qwen35"] = ("qwen35", "Qwen3_5TextConfig", "Qwen3_5ForCausalLM", LINEAR_HEADS, {})
CASES["qwen35moe"] = ("qwen35moe", "Qwen3_5MoeTextConfig", "Qwen3_5MoeForCausalLM",
                      dict(LINEAR_HEADS, **EXPERTS, intermediate_size=None), {})
CASES["qwen3next"] = ("qwen3next", "Qwen3NextConfig", "Qwen3NextForCausalLM", dict(LINEAR_HEADS, **EXPERTS), {})
CASES["qwen35_q8_0"] = ("qwen35", "Qwen3_5TextConfig", "Qwen3_5ForCausalLM",
                        dict(LINEAR_HEADS, linear_value_head_dim=16, intermediate_size=64), {"type": Type.Q8_0})

GEMMA4 = dict(head_dim=8, global_head_dim=16, sliding_window=9, final_logit_softcapping=3.0, tie_word_embeddings=True,
              vocab_size_per_layer_input=64, rope_parameters=dict(
                  full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=5e3),
                  sliding_attention=dict(rope_type="default", rope_theta=300.0)))
CASES["gemma4"] = ("gemma4", "Gemma4TextConfig", "Gemma4ForCausalLM",
                   dict(GEMMA4, num_hidden_layers=4, hidden_size_per_layer_input=12, num_kv_shared_layers=2,
                        use_double_wide_mlp=True, intermediate_size=20,
                        layer_types=["sliding_attention", "full_attention"] * 2), {})
CASES["gemma4_moe"] = ("gemma4", "Gemma4TextConfig", "Gemma4ForCausalLM",
                       dict(GEMMA4, hidden_size_per_layer_input=0, attention_k_eq_v=True, enable_moe_block=True,
                            num_global_key_value_heads=1, num_experts=4, top_k_experts=2, moe_intermediate_size=12,
                            layer_types=["sliding_attention", "full_attention"]), {})
CASES["gemma4_quantized"] = ("gemma4", "Gemma4TextConfig", "Gemma4ForCausalLM",
                             dict(GEMMA4, num_hidden_layers=4, hidden_size_per_layer_input=64, intermediate_size=64,
                                  num_kv_shared_layers=2, layer_types=["sliding_attention", "full_attention"] * 2),
                             {"type": Type.Q8_0, "types": {"per_layer_token_embd": Type.Q5_K}})
CASES["gpt_oss"] = ("gpt-oss", "GptOssConfig", "GptOssForCausalLM",
                    dict(head_dim=12, num_local_experts=4, num_experts_per_tok=2, intermediate_size=20,
                         sliding_window=9), {})
CASES["gpt_oss_mxfp4"] = ("gpt-oss", "GptOssConfig", "GptOssForCausalLM",
                          dict(head_dim=12, num_local_experts=3, num_experts_per_tok=2, intermediate_size=32,
                               sliding_window=9),
                          {"types": {"ffn_gate_exps": Type.MXFP4, "ffn_up_exps": Type.MXFP4,
                                     "ffn_down_exps": Type.MXFP4}})
CASES["olmoe"] = ("olmoe", "OlmoeConfig", "OlmoeForCausalLM",
                  dict(num_experts=4, num_experts_per_tok=2, intermediate_size=12), {})
CASES["olmo3"] = ("olmo2", "Olmo3Config", "Olmo3ForCausalLM",
                  dict(num_hidden_layers=4, sliding_window=9, hidden_size=24, rope_parameters=dict(
                      full_attention=dict(rope_type="yarn", factor=4.0, rope_theta=5e5,
                                          original_max_position_embeddings=32),
                      sliding_attention=dict(rope_type="default", rope_theta=5e5))), {})
CASES["seed_oss"] = ("seed_oss", "SeedOssConfig", "SeedOssForCausalLM", dict(head_dim=12), {})
CASES["starcoder2"] = ("starcoder2", "Starcoder2Config", "Starcoder2ForCausalLM", {}, {})
CASES["ernie4_5"] = ("ernie4_5", "Ernie4_5Config", "Ernie4_5ForCausalLM", dict(head_dim=12), {})
CASES["glm4"] = ("glm4", "Glm4Config", "Glm4ForCausalLM", dict(head_dim=8), {})
CASES["chatglm"] = ("chatglm", "GlmConfig", "GlmForCausalLM", dict(head_dim=8), {"fuse_qkv": True})
CASES["exaone4"] = ("exaone4", "Exaone4Config", "Exaone4ForCausalLM",
                    dict(head_dim=12, hidden_size=24, num_hidden_layers=4, sliding_window=9), {})
CASES["exaone4_full"] = ("exaone4", "Exaone4Config", "Exaone4ForCausalLM",
                         dict(head_dim=12, sliding_window=None, layer_types=["full_attention"] * 2), {})
CASES["hunyuan_dense"] = ("hunyuan-dense", "HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", dict(head_dim=12), {})
CASES["nemotron"] = ("nemotron", "NemotronConfig", "NemotronForCausalLM", dict(head_dim=8), {})
CASES["ernie4_5_moe"] = ("ernie4_5-moe", "Ernie4_5_MoeConfig", "Ernie4_5_MoeForCausalLM",
                         dict(moe_num_experts=4, moe_k=2, moe_intermediate_size=12, moe_num_shared_experts=1), {})
CASES["glm4moe"] = ("glm4moe", "Glm4MoeConfig", "Glm4MoeForCausalLM",
                    dict(head_dim=8, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
                         use_qk_norm=True, routed_scaling_factor=1.5), {"mtp": True})
CASES["granitemoe"] = ("granitemoe", "GraniteMoeSharedConfig", "GraniteMoeSharedForCausalLM",
                       dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7, attention_multiplier=0.21,
                            num_local_experts=4, num_experts_per_tok=2, intermediate_size=12,
                            shared_intermediate_size=16), {})
CASES["mistral3"] = ("mistral3", "Ministral3Config", "Ministral3ForCausalLM",
                     dict(head_dim=12, rope_parameters=dict(
                         rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16, mscale=1.0,
                         mscale_all_dim=1.0, llama_4_scaling_beta=0.5)), {})
LATENT = dict(num_key_value_heads=4, kv_lora_rank=20, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6,
              num_experts_per_tok=2, moe_intermediate_size=12)
CASES["deepseek2"] = ("deepseek2", "DeepseekV3Config", "DeepseekV3ForCausalLM",
                      dict(LATENT, q_lora_rank=12, n_routed_experts=6, n_group=3, topk_group=2,
                           first_k_dense_replace=1, rope_parameters=dict(
                               rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=16,
                               mscale=0.7, mscale_all_dim=0.7)), {"mtp": True})
CASES["deepseek2_unsplit"] = ("deepseek2", "DeepseekV2Config", "DeepseekV2ForCausalLM",
                              dict(LATENT, q_lora_rank=None, n_routed_experts=4, n_shared_experts=2,
                                   first_k_dense_replace=0, routed_scaling_factor=1.5), {"unsplit": True})
CASES["deepseek2_q8_0"] = ("deepseek2", "DeepseekV2Config", "DeepseekV2ForCausalLM",
                           dict(LATENT, hidden_size=64, intermediate_size=64, moe_intermediate_size=32, q_lora_rank=32,
                                kv_lora_rank=64, qk_nope_head_dim=32, v_head_dim=32, n_routed_experts=6,
                                n_shared_experts=1, n_group=3, topk_group=2, topk_method="group_limited_greedy",
                                first_k_dense_replace=1), {"type": Type.Q8_0})
HYBRID = dict(num_hidden_layers=3, hidden_size=24)
CASES["lfm2"] = ("lfm2", "Lfm2Config", "Lfm2ForCausalLM",
                 dict(HYBRID, block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention", "conv"]), {})
CASES["lfm2moe"] = ("lfm2moe", "Lfm2MoeConfig", "Lfm2MoeForCausalLM",
                    dict(HYBRID, layer_types=["conv", "full_attention", "conv"], num_dense_layers=1, num_experts=4,
                         num_experts_per_tok=2, moe_intermediate_size=12), {})
GRANITE_HYBRID = dict(HYBRID, layer_types=["linear_attention", "full_attention", "linear_attention"], mamba_n_heads=4,
                      mamba_expand=2, mamba_d_state=12, mamba_n_groups=2, embedding_multiplier=6.0, logits_scaling=0.7,
                      residual_multiplier=0.22, attention_multiplier=0.21)
CASES["granitehybrid"] = ("granitehybrid", "GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM",
                          dict(GRANITE_HYBRID, num_local_experts=4, num_experts_per_tok=2, intermediate_size=12,
                               shared_intermediate_size=16), {})
CASES["granitehybrid_dense"] = ("granitehybrid", "GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM",
                                dict(GRANITE_HYBRID, num_local_experts=0, shared_intermediate_size=44), {})
CASES["phimoe"] = ("phimoe", "PhimoeConfig", "PhimoeForCausalLM",
                   dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=12, attention_bias=True,
                        lm_head_bias=True), {})
CASES["mamba2"] = ("mamba2", "Mamba2Config", "Mamba2ForCausalLM",
                   dict(HYBRID, num_attention_heads=None, num_key_value_heads=None, intermediate_size=None,
                        max_position_embeddings=None, num_heads=4, head_dim=12, state_size=10, n_groups=2), {})
FALCON_H1 = dict(hidden_size=24, mamba_d_ssm=40, mamba_n_heads=4, mamba_d_head=10, mamba_d_state=12, head_dim=12)
# Powers of 2, with which BF16 still represents the weights exactly.
CASES["falcon_h1"] = ("falcon-h1", "FalconH1Config", "FalconH1ForCausalLM", dict(
    FALCON_H1, attention_in_multiplier=0.5, attention_out_multiplier=2.0, key_multiplier=0.5, ssm_in_multiplier=2.0,
    ssm_out_multiplier=0.5, ssm_multipliers=[0.5, 2.0, 0.5, 2.0, 0.25], mlp_multipliers=[0.5, 2.0],
    embedding_multiplier=2.0, lm_head_multiplier=0.5), {})
CASES["falcon_h1_norm"] = ("falcon-h1", "FalconH1Config", "FalconH1ForCausalLM", dict(
    FALCON_H1, mamba_rms_norm=True, mamba_norm_before_gate=False, mamba_n_groups=2), {})
NEMOTRON_H = dict(num_hidden_layers=None, hidden_size=24, head_dim=12, mamba_num_heads=4, mamba_head_dim=12,
                  ssm_state_size=10, n_groups=2)
CASES["nemotron_h"] = ("nemotron_h", "NemotronHConfig", "NemotronHForCausalLM",
                       dict(NEMOTRON_H, layers_block_type=["linear_attention", "mlp", "full_attention", "mlp"]), {})
CASES["nemotron_h_moe"] = ("nemotron_h_moe", "NemotronHConfig", "NemotronHForCausalLM", dict(
    NEMOTRON_H, layers_block_type=["linear_attention", "moe", "full_attention", "moe"], n_routed_experts=4,
    num_experts_per_tok=2, moe_intermediate_size=12, moe_shared_expert_intermediate_size=20, moe_latent_size=16,
    routed_scaling_factor=1.5), {})

# The scales of these types make the weights about as large as those of the other models.
SMALL_TYPES = {Type.TQ1_0: 0.08, Type.TQ2_0: 0.08, Type.IQ1_S: 0.01, Type.IQ1_M: 0.01, Type.IQ2_XXS: 1e-3,
               Type.IQ2_XS: 1e-3, Type.IQ2_S: 1e-3, Type.IQ3_XXS: 5e-4, Type.IQ3_S: 5e-4, Type.NVFP4: None}
for kind in SMALL_TYPES:
    CASES["blocks_llama_" + kind.name] = ("llama", "LlamaConfig", "LlamaForCausalLM",
                                          dict(hidden_size=256, intermediate_size=256, num_hidden_layers=1,
                                               num_key_value_heads=1), {"type": kind})

PERMUTED = ("llama", "mistral3", "granite", "granitemoe", "granitehybrid", "nemotron_h", "nemotron_h_moe", "smollm3",
            "arcee")
HYBRIDS = ("lfm2", "lfm2moe", "granitehybrid", "mamba2", "falcon-h1", "nemotron_h", "nemotron_h_moe")
NORM_OFFSETS = ("gemma", "gemma2", "gemma3", "nemotron")  # norm weights are offsets from 1 in Hugging Face's files


def permute(weights, n_head):
    """Reorders the rows of each head: transformers rotates row i with row i + half, llama.cpp neighboring rows."""
    return (weights.reshape(n_head, 2, weights.shape[0] // n_head // 2, *weights.shape[1:]).swapaxes(1, 2)
            .reshape(weights.shape))


def random_blocks(rng, kind, shape, shrink=1.0):
    """Returns blocks of random bits with small, finite scales."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    data = rng.integers(0, 256, (*shape[:-1], shape[-1] // block, size), dtype=np.uint8)
    if kind == Type.NVFP4:
        data[..., :4] = rng.integers(0x08, 0x18, data[..., :4].shape)
        return data.reshape(*shape[:-1], -1)
    if kind == Type.IQ1_M:
        scale = (rng.uniform(0.5, 1.0, data.shape[:-1]) * SMALL_TYPES[kind]).astype(np.float16).view(np.uint16)
        for word in range(4):
            data[..., 49 + 2 * word] = data[..., 49 + 2 * word] & 15 | (scale >> 4 * word & 15) << 4
        return data.reshape(*shape[:-1], -1)
    halves = {Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,),
              Type.IQ4_NL: (0,), Type.IQ4_XS: (0,), Type.TQ1_0: (52,), Type.TQ2_0: (64,)}.get(kind, (0,))
    scales = {Type.Q2_K: 2e-2, Type.Q3_K: 3e-3, Type.Q4_K: 4e-4, Type.Q5_K: 2e-4, Type.Q6_K: 1e-4, Type.IQ4_NL: 1e-3,
               Type.IQ4_XS: 1e-4, **SMALL_TYPES}
    for offset in halves:
        scale = (rng.uniform(0.5, 1.0, data.shape[:-1]) * scales[kind] * shrink).astype(np.float16)
        data[..., offset:offset + 2] = scale[..., None].view(np.uint8)
    return data.reshape(*shape[:-1], -1)


def encode(rng, values, kind, shrink):
    """Returns the bytes to store in the file and the float32 values that they represent."""
    if kind in (Type.F32, Type.F16):
        data = values.astype(np.float32 if kind == Type.F32 else np.float16)
        return data, data.astype(np.float32)
    if kind in (Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.MXFP4):
        data = gguf.quantize(values, kind)
    else:
        data = random_blocks(rng, kind, values.shape, shrink)
    return data, gguf.dequantize(data, kind).astype(np.float32)


def flat_names(state, architecture, config):
    """Returns the tensors under the names of older checkpoints, which the gguf package knows. In these, the experts'
    gate and up projections are separate, and the norms of StableLM's heads are stacked."""
    tensors = {}
    for name, tensor in state.items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if architecture == "gpt-oss" and ".mlp.experts." in name:
            # Matrices are [experts, in, out] in transformers. Columns of gate and up alternate.
            ending = ".bias" if name.endswith("_bias") else ".weight"
            rows = tensor if ending == ".bias" else tensor.transpose(1, 2)
            stem = name.removesuffix("_bias")
            if stem.endswith("gate_up_proj"):
                tensors[stem.replace("gate_up_proj", "gate_proj") + ending] = rows[:, ::2]
                tensors[stem.replace("gate_up_proj", "up_proj") + ending] = rows[:, 1::2]
            else:
                tensors[stem + ending] = rows
        elif name.endswith(".expert_bias"):
            tensors[name + ".bias"] = tensor
        elif ".feed_forward.experts." in name:
            stem = name.removeprefix("model.").rpartition(".")[0]
            parts = (("w1", "w3"), tensor.chunk(2, dim=1)) if name.endswith("gate_up_proj") else (("w2",), (tensor,))
            tensors.update({f"{stem}.{part}.weight": values for part, values in zip(*parts)})
        elif ".mixer.experts." in name:
            tensors[name.replace(".mixer.", ".mlp.") + ".weight"] = tensor
        elif name.endswith("e_score_correction_bias"):
            stem = name.removesuffix("_bias").replace(".gate.moe_statics.", ".moe_statics.")
            tensors[stem + ".bias"] = tensor.reshape(-1)
        elif ".shared_mlp." in name and architecture == "granitehybrid" and config.num_local_experts == 0:
            stem = name[:name.index("shared_mlp.")] + "mlp."
            if name.endswith("input_linear.weight"):
                tensors[stem + "gate_proj.weight"], tensors[stem + "up_proj.weight"] = tensor.chunk(2)
            else:
                tensors[stem + "down_proj.weight"] = tensor
        elif name.endswith("shared_mlp.input_linear.weight"):
            stem = name.removesuffix("shared_mlp.input_linear.weight") + "mlp.shared_mlp."
            tensors[stem + "gate_proj.weight"], tensors[stem + "up_proj.weight"] = tensor.chunk(2)
        elif ".block_sparse_moe." in name and architecture in ("granitemoe", "granitehybrid"):
            stem = name[:name.index("block_sparse_moe.")] + "block_sparse_moe."
            if name.endswith("gate_up_proj"):
                tensors[stem + "experts.w1.weight"], tensors[stem + "experts.w3.weight"] = tensor.chunk(2, dim=1)
            else:
                tensors[stem + ("router.layer" if "router" in name else "output_linear") + ".weight"] = tensor
        elif name.endswith("kv_b_proj.weight") and not getattr(config, "unsplit", False):
            heads = tensor.unflatten(0, (config.num_attention_heads, -1))
            keys, values = heads.split([config.qk_nope_head_dim, config.v_head_dim], dim=1)
            tensors[name.replace("kv_b_proj", "k_b_proj")] = keys.transpose(1, 2)
            tensors[name.replace("kv_b_proj", "v_b_proj")] = values
        elif name.endswith(".sinks"):
            tensors[name + ".weight"] = tensor
        elif name.endswith("mlp.experts.gate_up_proj"):
            gate, up = tensor.chunk(2, dim=1)
            tensors[name.replace("gate_up_proj", "gate_proj.weight")] = gate
            tensors[name.replace("gate_up_proj", "up_proj.weight")] = up
        elif name.endswith((".experts.gate_up_proj", ".experts.down_proj", ".layer_scalar")):
            tensors[name + ".weight"] = tensor
        elif ".q_layernorm.norms." in name or ".k_layernorm.norms." in name:
            stem, index = name.removesuffix(".weight").split(".norms.")
            tensors.setdefault(stem + ".weight", {})[int(index)] = tensor
        else:
            tensors[name] = tensor
    return {k: torch.stack([v[i] for i in sorted(v)]) if isinstance(v, dict) else v for k, v in tensors.items()}


def tile_heads(tensor, config, dim=0):
    """Reorders value heads: those that share a key head are adjacent in transformers, but not in llama.cpp."""
    keys = config.linear_num_key_heads
    grouped = tensor.unflatten(dim, (keys, config.linear_num_value_heads // keys, -1))
    return grouped.transpose(dim, dim + 1).flatten(dim, dim + 2)


def linear_attention(names, name, tensor, architecture, config):
    """Returns the arrays of a tensor of Gated DeltaNet, as to_gguf() does."""
    block = "blk." + name.split(".")[2] + "."
    qk_rows = 2 * config.linear_num_key_heads * config.linear_key_head_dim
    if name.endswith("in_proj_qkvz.weight"):
        per_key = config.linear_num_value_heads // config.linear_num_key_heads * config.linear_value_head_dim
        parts = tensor.unflatten(0, (config.linear_num_key_heads, -1)).split(
            [config.linear_key_head_dim] * 2 + [per_key] * 2, dim=1)
        q, k, v, z = (part.flatten(0, 1) for part in parts)
        return {block + "attn_qkv.weight": torch.cat([q, k, v]).numpy(), block + "attn_gate.weight": z.numpy()}
    if name.endswith("conv1d.weight"):
        tensor = tensor.squeeze(1)
    if architecture != "qwen3next" and not name.endswith("norm.weight"):
        if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
            tensor = torch.cat([tensor[:qk_rows], tile_heads(tensor[qk_rows:], config)])
        else:
            tensor = tile_heads(tensor, config, 1 if name.endswith("out_proj.weight") else 0)
    if name.endswith("A_log"):
        return {block + "ssm_a": (-torch.exp(tensor)).numpy()}
    if name.endswith("dt_bias"):
        return {block + "ssm_dt.bias": tensor.numpy()}
    return {names.get_name(name, try_suffixes=(".weight",)): tensor.numpy()}


def falcon_h1_scale(name, tensor, config):
    """Multiplies a tensor by the multipliers that the converter moves into it."""
    inner, group = config.mamba_d_ssm, config.mamba_n_groups * config.mamba_d_state
    factors = {"down_proj": config.mlp_multipliers[1], "gate_proj": config.mlp_multipliers[0],
               "k_proj": config.key_multiplier * config.attention_in_multiplier, "q_proj": config.attention_in_multiplier,
               "v_proj": config.attention_in_multiplier, "o_proj": config.attention_out_multiplier,
               "out_proj": config.ssm_out_multiplier, "lm_head": config.lm_head_multiplier,
               "embed_tokens": config.embedding_multiplier}
    module = name.split(".")[-2] if "." in name else name
    if module == "in_proj":
        sizes = torch.tensor([inner, inner, group, group, config.mamba_n_heads])
        return tensor * (config.ssm_in_multiplier * torch.tensor(config.ssm_multipliers).repeat_interleave(sizes))[:, None]
    return tensor * factors.get(module, 1.0)


def hybrid_tensor(names, name, tensor, architecture, config):
    """Returns the GGUF name and the values of a tensor of a model with recurrent state."""
    if architecture in ("mamba2", "nemotron_h", "nemotron_h_moe") and ".mlp.experts." not in name:
        name = name.replace("model.", "backbone.", 1) if name.startswith("model.") else name
    if architecture == "falcon-h1":
        tensor = falcon_h1_scale(name, tensor, config)
    if name.endswith(("conv1d.weight", "conv.conv.weight")):
        tensor = tensor.squeeze(1)
    if name.endswith("A_log"):
        tensor = -torch.exp(tensor)
    if name.endswith((".A_log", ".D")):
        tensor = tensor.reshape(-1, 1)
    if name.endswith(("mixer.norm.weight", "mamba.norm.weight")):
        tensor = tensor.reshape(getattr(config, "mamba_n_groups", None) or config.n_groups, -1)
    name = name.replace(".dt_bias", ".dt_proj.bias")
    return names.get_name(name, try_suffixes=(".weight", ".bias")), tensor.numpy()


def gguf_name(names, name):
    """Returns the GGUF name of a tensor, which the gguf package knows unless llama.cpp's converter chooses it."""
    for ending, stem in ((".router.scale", "ffn_gate_inp"), (".router.per_expert_scale", "ffn_down_exps")):
        if name.endswith(ending):
            return f"blk.{name.split('.')[2]}.{stem}.scale"
    return names.get_name(name, try_suffixes=(".weight", ".bias"))


def to_gguf(state, architecture, config, fuse_qkv):
    """Returns a dict from GGUF names to arrays, with rows in llama.cpp's order."""
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture),
                                     config.num_hidden_layers)
    tensors = {}
    for name, tensor in flat_names(state, architecture, config).items():
        if architecture in PERMUTED and name.endswith(("q_proj.weight", "q_proj.bias")):
            tensor = permute(tensor, config.num_attention_heads)
        if architecture in PERMUTED and name.endswith(("k_proj.weight", "k_proj.bias")):
            tensor = permute(tensor, config.num_key_value_heads)
        is_linear = architecture.startswith(("qwen35", "qwen3next"))
        if (architecture in NORM_OFFSETS or (is_linear and "linear_attn" not in name)) and name.endswith("norm.weight"):
            tensor = tensor + 1
        if is_linear and "linear_attn." in name:
            tensors.update(linear_attention(names, name, tensor, architecture, config))
            continue
        if architecture in HYBRIDS:
            new, values = hybrid_tensor(names, name, tensor, architecture, config)
            assert new, name
            tensors[new] = values
            continue
        if architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
        if name.endswith("mlp.shared_expert_gate.weight"):
            tensor = tensor.squeeze(0)
        new = gguf_name(names, name)
        assert new, name
        tensors[new] = tensor.numpy()
    if fuse_qkv:
        for layer in range(config.num_hidden_layers):
            for ending in (".weight", ".bias"):
                parts = [tensors.pop(f"blk.{layer}.attn_{x}{ending}") for x in "qkv"]
                tensors[f"blk.{layer}.attn_qkv{ending}"] = np.concatenate(parts)
    return tensors


def from_gguf(tensors, state, architecture, config):
    """Inverts to_gguf: returns `state` with its matrices replaced by those of the file, which may be rounded."""
    result = dict(state)
    probe = {k: torch.arange(v.numel(), dtype=torch.float64).reshape(v.shape) for k, v in state.items()}
    # Converting element numbers instead of values shows which element of `state` each element of the file comes from.
    sources = to_gguf(probe, architecture, config, False)
    inverse = {}
    flat = flat_names({k: torch.full(v.shape, float(i), dtype=torch.float64) for i, (k, v) in enumerate(state.items())},
                      architecture, config)
    owner = {}
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture),
                                     config.num_hidden_layers)
    for name, tensor in flat.items():
        owner[gguf_name(names, name)] = int(tensor.reshape(-1)[0])
    keys = list(state)
    for name, values in tensors.items():
        if values.ndim == 1:
            continue
        key = keys[owner[name]]
        target = inverse.setdefault(key, result[key].clone().reshape(-1))
        target[torch.from_numpy(sources[name].astype(np.int64).reshape(-1))] = torch.from_numpy(values.reshape(-1))
    for key, values in inverse.items():
        result[key] = values.reshape(state[key].shape)
    return result


def without_biases(model, architecture, config, missing):
    """Zeroes the biases that will be missing from the file. Returns their GGUF names."""
    if not missing:
        return []
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == architecture),
                                     config.num_hidden_layers)
    left_out = []
    for parameter_name, parameter in model.named_parameters():
        if not parameter_name.endswith(".bias"):
            continue
        name = names.get_name(parameter_name, try_suffixes=(".weight", ".bias"))
        if not name.startswith("blk."):
            continue
        _, layer, stem, _ = name.split(".")
        if stem in missing or f"{layer}.{stem}" in missing:
            parameter.zero_()
            left_out.append(name)
    return left_out


def write_gemma4_keys(writer, config):
    full, sliding = (config.per_layer_config[kind] for kind in ("full_attention", "sliding_attention"))
    is_sliding = [kind == "sliding_attention" for kind in config.layer_types]
    first_shared = config.num_hidden_layers - config.num_kv_shared_layers
    wide = 2 if config.use_double_wide_mlp else 1
    writer.add_feed_forward_length([config.intermediate_size * (wide if i >= first_shared else 1)
                                    for i in range(config.num_hidden_layers)])
    writer.add_head_count_kv([(sliding if s else full).num_key_value_heads for s in is_sliding])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
    writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    writer.add_rope_dimension_count(full.head_dim)
    writer.add_rope_dimension_count_swa(sliding.head_dim)
    writer.add_key_length(full.head_dim)
    writer.add_value_length(full.head_dim)
    writer.add_key_length_swa(sliding.head_dim)
    writer.add_value_length_swa(sliding.head_dim)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern(is_sliding)
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    if config.enable_moe_block:
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.top_k_experts)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


def write_latent_keys(writer, config):
    """Writes the sizes of latent attention as llama.cpp's converter does, or as it did before it split attn_kv_b."""
    is_split = not config.unsplit
    key_length = config.qk_nope_head_dim + config.qk_rope_head_dim
    writer.add_head_count_kv(1 if is_split else config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim if is_split else key_length)
    writer.add_value_length(config.kv_lora_rank if is_split else config.v_head_dim)
    if is_split:
        writer.add_key_length_mla(key_length)
        writer.add_value_length_mla(config.v_head_dim)
    if config.rope_parameters["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(config.rope_parameters["factor"])
        writer.add_rope_scaling_orig_ctx_len(config.rope_parameters["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_log_mul(0.1 * config.rope_parameters["mscale_all_dim"])
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    if config.norm_topk_prob:
        writer.add_expert_weights_norm(True)
    if config.n_group:
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


def write_hybrid_keys(writer, architecture, config):
    """Writes the keys of a model with recurrent state, except those of Granite's multipliers and of experts."""
    kinds = getattr(config, "layer_types", None) or []
    writer.add_context_length(getattr(config, "max_position_embeddings", 2 ** 20))
    writer.add_embedding_length(config.hidden_size)
    writer.add_layer_norm_rms_eps(getattr(config, "norm_eps", None) or getattr(config, "layer_norm_epsilon", None)
                                  or config.rms_norm_eps)
    if architecture == "mamba2":
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
    else:
        writer.add_head_count(config.num_attention_heads)
        is_hybrid = architecture != "falcon-h1"
        writer.add_head_count_kv([config.num_key_value_heads if kind == "full_attention" else 0 for kind in kinds]
                                 if is_hybrid else config.num_key_value_heads)
        width = config.moe_intermediate_size if architecture == "nemotron_h_moe" else config.intermediate_size
        writer.add_feed_forward_length([width if kind in ("mlp", "moe") else 0 for kind in kinds]
                                       if architecture.startswith("nemotron_h") else width)
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
        rope = getattr(config, "rope_parameters", None) or {}
        if "rope_theta" in rope:
            writer.add_rope_freq_base(rope["rope_theta"])
    if architecture == "granitehybrid":
        writer.add_rope_scaling_finetuned(False)
    if architecture.startswith("lfm2"):
        writer.add_shortconv_l_cache(config.conv_L_cache)
        if architecture == "lfm2moe":
            writer.add_leading_dense_block_count(config.num_dense_layers)
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        return

    def get(*names):
        return next(getattr(config, name) for name in names if hasattr(config, name))

    num_heads = get("mamba_n_heads", "mamba_num_heads", "num_heads")
    head_dim = get("mamba_d_head", "mamba_head_dim", "head_dim")
    writer.add_ssm_conv_kernel(get("mamba_d_conv", "conv_kernel"))
    writer.add_ssm_state_size(get("mamba_d_state", "ssm_state_size", "state_size"))
    writer.add_ssm_group_count(get("mamba_n_groups", "n_groups"))
    writer.add_ssm_inner_size(num_heads * head_dim)
    writer.add_ssm_time_step_rank(num_heads)


def write_keys(writer, architecture, config, num_mtp_layers):
    def get(name, default=None):
        value = getattr(config, name, None)
        return default if value is None else value

    rope = get("rope_parameters", {})
    rope = rope.get("full_attention", rope)
    writer.add_name("tiny random " + architecture)
    writer.add_block_count(config.num_hidden_layers + num_mtp_layers)
    if num_mtp_layers:
        writer.add_nextn_predict_layers(num_mtp_layers)
    if architecture in HYBRIDS:
        write_hybrid_keys(writer, architecture, config)
        write_granite_keys(writer, architecture, config)
        if architecture not in ("nemotron_h", "mamba2", "falcon-h1"):
            write_expert_keys(writer, architecture, config)
        return
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    if architecture != "gemma4":
        writer.add_feed_forward_length(get("intermediate_size", 4 * config.hidden_size))
    writer.add_head_count(config.num_attention_heads)
    if architecture == "gemma4":
        return write_gemma4_keys(writer, config)
    if architecture == "deepseek2":
        return write_latent_keys(writer, config)
    if architecture == "gpt2":
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_head_count_kv(config.num_key_value_heads)
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    if architecture == "nemotron":
        writer.add_layer_norm_eps(config.norm_eps)
    elif architecture == "starcoder2":
        writer.add_layer_norm_eps(config.norm_epsilon)
    elif architecture == "stablelm":
        writer.add_layer_norm_eps(config.layer_norm_eps)
        writer.add_parallel_residual(config.use_parallel_residual)
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head_dim = get("head_dim", config.hidden_size // config.num_attention_heads)
    rotary = int(rope.get("partial_rotary_factor", 1.0) * head_dim)
    writer.add_rope_dimension_count(rotary)
    if head_dim * config.num_attention_heads != config.hidden_size:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if rope.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if architecture == "gpt-oss" or get("model_type") == "olmo3" or (
            architecture == "exaone4" and config.sliding_window):
        writer.add_sliding_window(config.sliding_window)
    if rope.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if architecture == "mistral3":
        writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])
    if architecture == "phi3":
        original = rope.get("original_max_position_embeddings", config.max_position_embeddings)
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_sliding_window(get("sliding_window", 0))
        scale = config.max_position_embeddings / original
        if scale > 1:
            writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(original)))
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if architecture in ("gemma2", "gemma3"):
        writer.add_sliding_window(config.sliding_window)
    write_granite_keys(writer, architecture, config)
    if architecture.startswith(("qwen35", "qwen3next")):
        writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        writer.add_ssm_state_size(config.linear_key_head_dim)
        writer.add_ssm_group_count(config.linear_num_key_heads)
        writer.add_ssm_time_step_rank(config.linear_num_value_heads)
        writer.add_ssm_inner_size(config.linear_value_head_dim * config.linear_num_value_heads)
        writer.add_full_attention_interval(2)
    write_expert_keys(writer, architecture, config)


def write_granite_keys(writer, architecture, config):
    if architecture.startswith("granite"):
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)


def write_expert_keys(writer, architecture, config):
    def get(name, default=None):
        value = getattr(config, name, None)
        return default if value is None else value

    experts = get("num_local_experts", get("num_experts", get("n_routed_experts")))
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        if architecture == "glm4moe":
            writer.add_expert_shared_count(config.n_shared_experts)
            writer.add_leading_dense_block_count(config.first_k_dense_replace)
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
            writer.add_expert_weights_scale(config.routed_scaling_factor)
            writer.add_expert_weights_norm(config.norm_topk_prob)
            writer.add_expert_group_count(config.n_group)
            writer.add_expert_group_used_count(config.topk_group)
        if architecture == "nemotron_h_moe":
            writer.add_expert_shared_feed_forward_length(config.moe_shared_expert_intermediate_size)
            writer.add_expert_shared_count(config.n_shared_experts)
            writer.add_expert_weights_norm(config.norm_topk_prob)
            writer.add_expert_weights_scale(config.routed_scaling_factor)
            writer.add_expert_group_count(config.n_group)
            if config.moe_latent_size:
                writer.add_moe_latent_size(config.moe_latent_size)
        if architecture == "ernie4_5-moe":
            writer.add_expert_shared_count(config.moe_num_shared_experts)
            writer.add_leading_dense_block_count(config.moe_layer_start_index)
            writer.add_interleave_moe_layer_step(config.moe_layer_interval)
        if architecture == "gpt-oss":
            writer.add_expert_feed_forward_length(config.intermediate_size)
        if hasattr(config, "moe_intermediate_size"):
            writer.add_expert_feed_forward_length(config.moe_intermediate_size)
        if architecture in ("granitemoe", "granitehybrid"):
            writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
        if hasattr(config, "shared_expert_intermediate_size"):
            writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def write_vocabulary(writer, config):
    """Writes the vocabulary of a byte-level BPE: single characters and one merged pair."""
    characters = [chr(c) for c in range(ord("!"), ord("!") + config.vocab_size - 4)] + ["!\""]
    tokens = ["<pad>", "<s>", "</s>"] + characters
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * len(characters))
    writer.add_token_merges(["! \""])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}")


def rope_tensors(architecture, config):
    rope = getattr(config, "rope_parameters", None) or {}
    if architecture == "gemma4":
        half = config.per_layer_config["full_attention"].head_dim // 2
        rotated = int(rope["full_attention"]["partial_rotary_factor"] * half)
        return {"rope_freqs.weight": np.array([1.0] * rotated + [1e30] * (half - rotated), dtype=np.float32)}
    if rope.get("rope_type") == "llama3":
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        freqs = 1.0 / (rope["rope_theta"] ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))
        low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
        original = rope["original_max_position_embeddings"]
        factors = []
        for freq in freqs:
            wavelength = 2 * math.pi / freq
            if wavelength < original / high:
                factors.append(1.0)
            elif wavelength > original / low:
                factors.append(factor)
            else:
                smooth = (original / wavelength - low) / (high - low)
                factors.append(float(1 / ((1 - smooth) / factor + smooth)))
        return {"rope_freqs.weight": np.array(factors, dtype=np.float32)}
    if rope.get("rope_type") == "longrope":
        return {"rope_factors_long.weight": np.array(rope["long_factor"], dtype=np.float32),
                "rope_factors_short.weight": np.array(rope["short_factor"], dtype=np.float32)}
    return {}


def make(name, seed, output):
    architecture, config_class, model_class, overrides, options = CASES[name]
    sizes = {k: v for k, v in {**SIZES, **overrides}.items() if v is not None or k in ("sliding_window", "q_lora_rank")}
    config = getattr(transformers, config_class)(**sizes)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    config.unsplit = options.get("unsplit", False)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = getattr(transformers, model_class)(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            is_norm = "norm" in parameter_name or ".ln_" in parameter_name
            values = torch.randn_like(parameter) * (0.3 if is_norm else 0.25)
            is_linear = architecture.startswith(("qwen35", "qwen3next"))
            is_zero_centered = architecture in NORM_OFFSETS or (is_linear and "linear_attn" not in parameter_name)
            if architecture == "gemma4":
                values += 1.0 if is_norm or parameter_name.endswith("scale") else 0.0
            elif is_norm and not is_zero_centered and parameter_name.endswith("weight"):
                values += 1.0
            if architecture in NORM_OFFSETS or is_linear:
                values *= 0.5
            parameter.copy_(values.to(torch.bfloat16).to(torch.float32))
        for buffer_name, buffer in model.named_buffers():
            if buffer_name.endswith("layer_scalar"):
                buffer.fill_(0.75)
        for parameter_name, tensor in model.state_dict().items():
            if parameter_name.endswith(("e_score_correction_bias", "expert_bias")):
                tensor.copy_((0.1 * torch.randn(tensor.shape)).to(torch.bfloat16))
        left_out = without_biases(model, architecture, config, options.get("no_bias", ()))
    state = {k: v for k, v in model.state_dict().items() if "rotary" not in k}
    if config.tie_word_embeddings:
        state.pop("lm_head.weight", None)

    directory = output / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    parts = options.get("split", 1)
    writer = gguf.GGUFWriter(directory / "model.gguf", architecture, split_max_tensors=10 if parts > 1 else 0)
    write_keys(writer, architecture, config, 1 if options.get("mtp") else 0)
    write_vocabulary(writer, config)
    expected, inexact = {}, False
    for tensor_name, values in {**to_gguf(state, architecture, config, options.get("fuse_qkv")),
                                **rope_tensors(architecture, config)}.items():
        if tensor_name in left_out:
            continue
        kind = Type.F32
        is_matrix = values.ndim > 1 and not tensor_name.endswith(".bias")
        if is_matrix and not any(part in tensor_name for part in (
                "ffn_gate_inp", "norm", "ssm_conv1d", "ssm_a", "ssm_d", "shortconv.conv")):
            stem = tensor_name.removesuffix(".weight").split(".")[-1]
            kind = options.get("types", {}).get(stem, options.get("type", Type.BF16))
        data, stored_values = encode(rng, np.ascontiguousarray(values, dtype=np.float32), kind,
                                     options.get("shrink", 1.0))
        writer.add_tensor(tensor_name, np.ascontiguousarray(data), raw_dtype=kind)
        if not tensor_name.startswith("rope_"):
            expected[tensor_name] = stored_values
        inexact = inexact or not np.array_equal(stored_values, values)
    if options.get("mtp"):
        writer.add_tensor(f"blk.{config.num_hidden_layers}.nextn.enorm.weight", np.ones(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if inexact:
        model.load_state_dict(from_gguf(expected, state, architecture, config), strict=False)
        model.tie_weights()

    ids = torch.randint(3, config.vocab_size, (1, LENGTH))
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits[0].to(torch.float64)
    logprobs = torch.log_softmax(logits, dim=-1).to(torch.float32)
    save_file({"ids": ids[0].to(torch.float32), "logprobs": logprobs.contiguous()}, directory / "golden.safetensors")
    size = sum(f.stat().st_size for f in directory.iterdir())
    print(f"{name}: {size} bytes, inexact {inexact}, spread {float(logits.std()):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        make(name, list(CASES).index(name), arguments.output)


if __name__ == "__main__":
    main()
