# Packages: safetensors, torch, transformers (requirements.txt).
"""Makes random checkpoints of every decoder family, with random sizes and switches, and compares the program with
Hugging Face transformers on them. In float32 it compares the log-probabilities of every token at every prompt
position and the greedy tokens, on one and two ranks, with and without chunked prefill. It also compares the errors of
both in bfloat16. The script keeps no files.

    python tests/golden/models_fresh.py build/release/vllmcli [--seed N] [--count N] [ARCHITECTURE...]

Prints one line per checkpoint. The exit status is the number of failures, at most 99.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import torch
import transformers

from model_cases import FAMILIES, library_class, make_model
from models_golden import restyle

NUM_OUTPUTS = 40


def rope(rng, overrides, rotary_dim):
    """Sets random RoPE parameters."""
    kind = rng.choice(["none", "none", "linear", "llama3", "yarn"])
    theta = rng.choice([1e4, 5e5, 300.0])
    parameters = {"none": dict(rope_type="default"),
                  "linear": dict(rope_type="linear", factor=rng.choice([2.0, 3.5])),
                  "llama3": dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                 original_max_position_embeddings=32),
                  "yarn": dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=40,
                               **rng.choice([{}, dict(attention_factor=1.2), dict(beta_fast=20.0, truncate=False)]))}
    overrides["rope_parameters"] = dict(parameters[kind], rope_theta=theta)


def gemma4(rng, overrides, window):
    """Sets the switches of Gemma 4."""
    pick = rng.choice
    layers = overrides["num_hidden_layers"]
    kinds = [pick(["sliding_attention", "full_attention"]) for _ in range(layers - 1)] + ["full_attention"]
    # Shared layers need a layer of each type before them.
    num_shared = pick([n for n in range(layers) if set(kinds[:layers - n]) == set(kinds)])
    heads = overrides["num_attention_heads"]
    overrides.update(
        layer_types=kinds, num_kv_shared_layers=num_shared, use_double_wide_mlp=pick([True, False]),
        sliding_window=window, head_dim=pick([8, 10, 14, 24]), global_head_dim=pick([8, 12, 20]),
        attention_k_eq_v=pick([True, False]), attention_bias=pick([True, False]),
        num_global_key_value_heads=pick([n for n in (1, 2, 4) if heads % n == 0]),
        # transformers 5.23 fails on a model with shared layers but without per-layer inputs.
        hidden_size_per_layer_input=pick([4, 10] if num_shared else [0, 4, 10]),
        vocab_size_per_layer_input=overrides["vocab_size"],
        final_logit_softcapping=pick([None, 2.0, 30.0]), hidden_activation=pick(["gelu_pytorch_tanh", "silu"]),
        rope_parameters=dict(
            full_attention=pick([dict(rope_type="proportional", partial_rotary_factor=pick([0.0, 0.25, 0.5, 1.0]),
                                      rope_theta=1e6),
                                 dict(rope_type="default", rope_theta=500.0)]),
            sliding_attention=dict(rope_type="default", rope_theta=pick([1e4, 200.0]))))
    if pick([True, False]):
        overrides.update(enable_moe_block=True, num_experts=5, top_k_experts=pick([1, 2, 5]),
                         moe_intermediate_size=pick([10, 18]))


def gemma3n(rng, overrides, window):
    """Sets the switches of Gemma 3n."""
    pick = rng.choice
    layers = overrides["num_hidden_layers"]
    kinds = [pick(["sliding_attention", "full_attention"]) for _ in range(layers)]
    num_streams = pick([2, 4])
    overrides.update(
        layer_types=kinds, sliding_window=window, head_dim=pick([8, 10, 14, 24]), attention_bias=pick([True, False]),
        num_kv_shared_layers=pick([n for n in range(layers) if set(kinds[:layers - n]) == set(kinds)]),
        intermediate_size=[pick([14, 30, 44]) for _ in range(layers)], laurel_rank=pick([3, 8]),
        activation_sparsity_pattern=[pick([0.0, 0.3, 0.95]) for _ in range(layers)], altup_num_inputs=num_streams,
        altup_active_idx=rng.randrange(num_streams), altup_correct_scale=pick([True, False]),
        hidden_size_per_layer_input=pick([4, 10]), vocab_size_per_layer_input=overrides["vocab_size"] - pick([0, 9]),
        final_logit_softcapping=pick([2.0, 30.0]), rope_parameters=dict(
            full_attention=pick([dict(rope_type="default", rope_theta=1e6),
                                 dict(rope_type="linear", factor=8.0, rope_theta=1e5)]),
            sliding_attention=dict(rope_type="default", rope_theta=pick([1e4, 200.0]))))


def latent(architecture, rng, overrides):
    """Sets the switches of multi-head latent attention and its experts."""
    pick = rng.choice
    heads = overrides["num_attention_heads"]
    groups = pick([(1, 1), (2, 1), (3, 2)])
    is_v2 = architecture == "DeepseekV2ForCausalLM"  # transformers needs even sizes for it
    overrides.update(
        num_key_value_heads=heads, q_lora_rank=pick([None, 6, 17]), kv_lora_rank=pick([4, 16, 30, 70]),
        qk_nope_head_dim=pick([4, 8, 22] if is_v2 else [3, 8, 20]), qk_rope_head_dim=pick([2, 6, 16]), v_head_dim=pick([5, 16, 34]),
        attention_bias=pick([True, False]), n_routed_experts=6, num_experts_per_tok=pick([1, 2]), n_group=groups[0],
        topk_group=groups[1], moe_intermediate_size=pick([10, 18]), n_shared_experts=pick([1, 2]),
        rms_norm_eps=pick([1e-6, 1e-4]), routed_scaling_factor=pick([1.0, 1.8]))
    if architecture == "Glm4MoeLiteForCausalLM":
        overrides["mlp_layer_types"] = [pick(["dense", "sparse"]) for _ in range(overrides["num_hidden_layers"])]
    else:
        overrides["first_k_dense_replace"] = pick([0, 1])
    if is_v2:
        overrides.update(topk_method=pick(["greedy", "group_limited_greedy"]), mlp_bias=pick([True, False]))
    else:
        overrides.update(norm_topk_prob=pick([True, False]), rope_interleave=pick([True, False]))
    yarn = dict(rope_type="yarn", factor=pick([4.0, 40.0]), original_max_position_embeddings=40,
                **pick([{}, dict(mscale=1.0, mscale_all_dim=1.0), dict(mscale=0.7, mscale_all_dim=1.3),
                        dict(mscale_all_dim=0.5), dict(beta_fast=20.0, attention_factor=1.2)]))
    overrides["rope_parameters"] = dict(pick([dict(rope_type="default"), yarn]), rope_theta=pick([1e4, 300.0]))


def random_overrides(architecture, rng):
    pick = rng.choice
    kv_heads = pick([1, 2, 2, 4])
    heads = kv_heads * pick([1, 2, 3]) if kv_heads > 1 else pick([2, 4, 6])
    dim = pick([8, 12, 16, 20])
    o = dict(vocab_size=pick([50, 64, 97, 131]), num_attention_heads=heads, num_key_value_heads=kv_heads,
             hidden_size=heads * dim, num_hidden_layers=pick([1, 2, 3, 4]), intermediate_size=pick([30, 44, 65]),
             max_position_embeddings=160, tie_word_embeddings=pick([True, False]))
    layers, window = o["num_hidden_layers"], pick([1, 5, 16, 17, 33])
    own_head_dim = pick([8, 10, 14, 24])
    act = dict(hidden_act=pick(["silu", "gelu", "relu", "gelu_pytorch_tanh", "quick_gelu", "gelu_new"]))
    sparse = dict(num_experts=pick([2, 5, 9]), num_experts_per_tok=pick([1, 2]), moe_intermediate_size=pick([10, 18]),
                  norm_topk_prob=pick([True, False]), decoder_sparse_step=pick([1, 2]),
                  mlp_only_layers=pick([[], [0]]))
    if architecture in ("LlamaForCausalLM", "GraniteForCausalLM"):
        o.update(act, attention_bias=pick([True, False]), mlp_bias=pick([True, False]))
        rope(rng, o, dim)
    if architecture == "LlamaForCausalLM":
        o.update(head_dim=own_head_dim)
    if architecture == "GraniteForCausalLM":
        o.update(embedding_multiplier=pick([1.0, 12.0]), residual_multiplier=pick([1.0, 0.22]),
                 logits_scaling=pick([1.0, 8.0]), attention_multiplier=pick([0.0625, 0.3]))
    if architecture == "MistralForCausalLM":
        o.update(act, sliding_window=pick([None, window]), head_dim=own_head_dim)
        rope(rng, o, dim)
    if architecture in ("Qwen2ForCausalLM", "Qwen3ForCausalLM"):
        o.update(act, use_sliding_window=pick([True, False]), sliding_window=window,
                 max_window_layers=pick([0, 1, layers]))
        rope(rng, o, dim)
        if architecture == "Qwen3ForCausalLM":
            o.update(head_dim=own_head_dim, attention_bias=pick([True, False]))
    if "VLFor" in architecture:
        is_3 = architecture.startswith("Qwen3")
        half = (own_head_dim if is_3 else dim) // 2
        part = half // 3
        o.update(rope_parameters=dict(rope_type="default", rope_theta=pick([1e4, 5e5]),
                                      mrope_section=[half - 2 * part, part, part]))
        if is_3:
            o.update(act, head_dim=own_head_dim, attention_bias=pick([True, False]))
        else:
            o.update(act, use_sliding_window=pick([True, False]), sliding_window=window,
                     max_window_layers=pick([0, 1, layers]))
    if architecture == "Gemma3nForCausalLM":
        gemma3n(rng, o, window)
    elif architecture == "Gemma4ForCausalLM":
        gemma4(rng, o, window)
    elif architecture.startswith("Gemma"):
        o.update(head_dim=own_head_dim, attention_bias=pick([True, False]))
    if architecture in ("Gemma2ForCausalLM", "Gemma3ForCausalLM"):
        o.update(sliding_window=window, query_pre_attn_scalar=pick([8, 30]),
                 final_logit_softcapping=pick([None, 2.0, 30.0]),
                 layer_types=[pick(["sliding_attention", "full_attention"]) for _ in range(layers)])
    if architecture == "Gemma2ForCausalLM":
        o.update(attn_logit_softcapping=pick([None, 1.5, 50.0]))
    if architecture == "Gemma3ForCausalLM":
        o.update(rope_parameters=dict(full_attention=pick([dict(rope_type="default", rope_theta=1e6),
                                                           dict(rope_type="linear", factor=8.0, rope_theta=1e5)]),
                                      sliding_attention=dict(rope_type="default", rope_theta=pick([1e4, 200.0]))))
    if architecture == "Phi3ForCausalLM":
        partial = pick([1.0, 0.5]) if dim % 4 == 0 else 1.0
        half = int(dim * partial) // 2
        o.update(act, sliding_window=pick([None, window]), partial_rotary_factor=partial)
        if pick([True, False]):
            # Each prompt is longer than 4 tokens, so transformers uses the long factors too.
            o["original_max_position_embeddings"] = 4
            o["rope_scaling"] = dict(rope_type="longrope", original_max_position_embeddings=4,
                                     short_factor=[1.0] * half, long_factor=[1.0 + rng.random() for _ in range(half)])
    if architecture == "SmolLM3ForCausalLM":
        o.update(act, no_rope_layers=[pick([0, 1]) for _ in range(layers)], attention_bias=pick([True, False]),
                 mlp_bias=pick([True, False]), use_sliding_window=pick([True, False]), sliding_window=window)
    if architecture == "Olmo2ForCausalLM":
        o.update(act, attention_bias=pick([True, False]))
        rope(rng, o, dim)
    if architecture == "ArceeForCausalLM":
        o.update(hidden_act=pick(["relu2", "relu2", "gelu"]), attention_bias=pick([True, False]),
                 mlp_bias=pick([True, False]), head_dim=own_head_dim)
        rope(rng, o, dim)
    if architecture == "StableLmForCausalLM":
        o.update(act, use_qkv_bias=pick([True, False]), qk_layernorm=pick([True, False]),
                 use_parallel_residual=pick([True, False]), partial_rotary_factor=pick([0.5, 1.0]))
    if architecture == "MixtralForCausalLM":
        o.update(num_local_experts=sparse["num_experts"], num_experts_per_tok=sparse["num_experts_per_tok"],
                 sliding_window=pick([None, window]))
    if architecture == "Qwen2MoeForCausalLM":
        o.update(sparse, shared_expert_intermediate_size=pick([14, 22]), qkv_bias=pick([True, False]),
                 use_sliding_window=pick([True, False]), sliding_window=window, max_window_layers=pick([1, layers]))
    if architecture == "Qwen3MoeForCausalLM":
        o.update(sparse, head_dim=own_head_dim, attention_bias=pick([True, False]),
                 use_sliding_window=pick([True, False]), sliding_window=window)
    if architecture in ("Qwen3NextForCausalLM", "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM"):
        key_heads = pick([1, 2, 3])
        o.update(act, head_dim=pick([8, 16, 24]), partial_rotary_factor=pick([0.25, 0.5, 1.0]),
                 full_attention_interval=pick([1, 2, 3, 4]), layer_types=None,
                 linear_conv_kernel_dim=pick([2, 3, 4]), linear_num_key_heads=key_heads,
                 linear_num_value_heads=key_heads * pick([2, 4]), linear_key_head_dim=pick([8, 15, 24]),
                 linear_value_head_dim=pick([8, 16, 21]))
    if architecture == "Lfm2ForCausalLM":
        o.update(conv_L_cache=pick([2, 3, 4]), conv_bias=pick([True, False]), layer_types=None,
                 full_attn_idxs=[i for i in range(layers) if pick([True, False])], block_multiple_of=pick([1, 8, 20]),
                 block_auto_adjust_ff_dim=pick([True, False]), block_ffn_dim_multiplier=pick([1.0, 1.3]))
    if architecture == "Qwen3NextForCausalLM":
        o.update(sparse, shared_expert_intermediate_size=pick([14, 22]))
    if architecture == "Qwen3_5MoeForCausalLM":
        o.update(num_experts=sparse["num_experts"], num_experts_per_tok=sparse["num_experts_per_tok"],
                 moe_intermediate_size=sparse["moe_intermediate_size"], intermediate_size=None,
                 shared_expert_intermediate_size=pick([14, 22]))
    if architecture == "GptOssForCausalLM":
        o.update(num_local_experts=sparse["num_experts"], num_experts_per_tok=sparse["num_experts_per_tok"],
                 head_dim=own_head_dim, attention_bias=pick([True, False]), sliding_window=window,
                 swiglu_limit=pick([7.0, 0.4]))
        if pick([True, False]):
            rope(rng, o, own_head_dim)
    if architecture == "OlmoeForCausalLM":
        o.update(num_experts=sparse["num_experts"], num_experts_per_tok=sparse["num_experts_per_tok"],
                 norm_topk_prob=sparse["norm_topk_prob"], attention_bias=pick([True, False]),
                 clip_qkv=pick([None, 0.5, 5.0]))
        rope(rng, o, dim)
    if architecture == "Olmo3ForCausalLM":
        types = [pick(["sliding_attention", "full_attention"]) for _ in range(layers)]
        default = ["sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(layers)]
        rope(rng, o, dim)
        # In an old config.json, transformers reads another base for the sliding layers than for the full layers.
        o.update(act, sliding_window=window, attention_bias=pick([True, False]), layer_types=pick([types, default]),
                 rope_parameters=dict(full_attention=dict(o["rope_parameters"], rope_theta=5e5),
                                      sliding_attention=dict(rope_type="default", rope_theta=5e5)))
    if architecture == "SeedOssForCausalLM":
        o.update(act, head_dim=own_head_dim, attention_bias=pick([True, False]),
                 attention_out_bias=pick([True, False]), mlp_bias=pick([True, False]))
        rope(rng, o, own_head_dim)
    if architecture == "Starcoder2ForCausalLM":
        o.update(act, use_bias=pick([True, False]), sliding_window=pick([None, window]))
        rope(rng, o, dim)
    if architecture == "Ernie4_5ForCausalLM":
        o.update(act, use_bias=pick([True, False]), head_dim=own_head_dim)
        rope(rng, o, own_head_dim)
    if architecture in ("GlmForCausalLM", "Glm4ForCausalLM"):
        partial = pick([0.5, 1.0])
        o.update(act, head_dim=pick([8, 16, 24]), attention_bias=pick([True, False]))
        rope(rng, o, own_head_dim)
        o["rope_parameters"]["partial_rotary_factor"] = partial
    if architecture == "Ministral3ForCausalLM":
        o.update(act, sliding_window=pick([None, window]), head_dim=own_head_dim, rope_parameters=dict(
            rope_type="yarn", rope_theta=pick([1e4, 1e6]), factor=pick([4.0, 16.0]),
            original_max_position_embeddings=pick([40, 64]), llama_4_scaling_beta=pick([0.0, 0.1, 0.7]),
            **pick([{}, dict(mscale=1.0, mscale_all_dim=1.0)])))
    if architecture == "Exaone4ForCausalLM":
        is_hybrid = pick([True, False])
        types = [pick(["sliding_attention", "full_attention"]) for _ in range(layers)]
        o.update(act, head_dim=own_head_dim, sliding_window=window if is_hybrid else None,
                 layer_types=types if is_hybrid else ["full_attention"] * layers)
        rope(rng, o, own_head_dim)
    if architecture == "HunYuanDenseV1ForCausalLM":
        o.update(act, head_dim=own_head_dim, attention_bias=pick([True, False]))
        rope(rng, o, own_head_dim)
        if pick([True, False]):
            o["rope_parameters"] = dict(rope_type="dynamic", alpha=pick([3.0, 1000.0]), factor=1.0, rope_theta=1e4)
    if architecture == "HeliumForCausalLM":
        o.update(act, head_dim=dim, attention_bias=pick([True, False]), mlp_bias=pick([True, False]))
        rope(rng, o, dim)
    if architecture == "NemotronForCausalLM":
        rope(rng, o, own_head_dim)
        o.update(hidden_act=pick(["relu2", "gelu"]), head_dim=pick([8, 16, 24]), attention_bias=pick([True, False]),
                 mlp_bias=pick([True, False]))
        o["rope_parameters"]["partial_rotary_factor"] = pick([0.5, 1.0])
    if architecture == "Ernie4_5_MoeForCausalLM":
        o.update(act, moe_num_experts=sparse["num_experts"], moe_k=sparse["num_experts_per_tok"],
                 num_experts_per_tok=sparse["num_experts_per_tok"], moe_intermediate_size=pick([10, 18]),
                 moe_num_shared_experts=pick([0, 1, 2]), moe_layer_start_index=pick([0, 1]),
                 moe_layer_interval=pick([1, 2]), moe_norm_min=pick([1e-12, 0.6]))
        rope(rng, o, dim)
    if architecture == "Glm4MoeForCausalLM":
        groups = pick([(1, 1), (2, 1), (3, 2)])
        o.update(act, n_routed_experts=6, n_group=groups[0], topk_group=groups[1],
                 num_experts_per_tok=sparse["num_experts_per_tok"], moe_intermediate_size=pick([10, 18]),
                 n_shared_experts=pick([1, 2]), first_k_dense_replace=pick([0, 1]), head_dim=pick([8, 16]),
                 use_qk_norm=pick([True, False]), attention_bias=pick([True, False]),
                 norm_topk_prob=sparse["norm_topk_prob"], routed_scaling_factor=pick([1.0, 1.8]))
        rope(rng, o, dim)
        o["rope_parameters"]["partial_rotary_factor"] = pick([0.5, 1.0])
    if architecture.startswith("BailingMoe"):
        groups = pick([(1, 1), (3, 1), (3, 2)])
        experts_per_tok = pick([1, 2])
        o.update(num_experts=6, num_experts_per_tok=experts_per_tok, moe_intermediate_size=pick([10, 18]),
                 num_shared_experts=pick([0, 1, 2]), first_k_dense_replace=pick([0, 1]), head_dim=pick([8, 16]),
                 use_qkv_bias=pick([True, False]), use_bias=pick([True, False]),
                 rope_parameters=dict(rope_theta=pick([1e4, 500.0])))
        if architecture == "BailingMoeForCausalLM":
            o.update(norm_topk_prob=sparse["norm_topk_prob"])
        else:
            o.update(n_group=groups[0], topk_group=groups[1], use_qk_norm=pick([True, False]),
                     partial_rotary_factor=pick([0.5, 1.0]), routed_scaling_factor=pick([1.0, 1.8]))
    if architecture.startswith("Deepseek") or architecture == "Glm4MoeLiteForCausalLM":
        o.update(act)
        latent(architecture, rng, o)
    if architecture.startswith("GraniteMoe"):
        o.update(act, num_local_experts=sparse["num_experts"], num_experts_per_tok=sparse["num_experts_per_tok"],
                 attention_bias=pick([True, False]), embedding_multiplier=pick([1.0, 12.0]),
                 residual_multiplier=pick([1.0, 0.22]), logits_scaling=pick([1.0, 8.0]),
                 attention_multiplier=pick([0.0625, 0.3]))
        rope(rng, o, dim)
        if architecture == "GraniteMoeSharedForCausalLM":
            o.update(shared_intermediate_size=pick([0, 14, 22]))
        if architecture == "GraniteMoeHybridForCausalLM":
            o.update(shared_intermediate_size=pick([14, 22]), position_embedding_type=pick([None, "rope"]),
                     num_local_experts=pick([0, sparse["num_experts"]]), mamba_n_heads=heads, mamba_expand=pick([1, 2]),
                     mamba_n_groups=pick([1, 2]), mamba_d_state=pick([8, 20]), mamba_d_conv=pick([2, 4]),
                     mamba_conv_bias=pick([True, False]), mamba_proj_bias=pick([True, False]),
                     layer_types=[pick(["linear_attention", "full_attention"]) for _ in range(layers)])
    if architecture == "Mamba2ForCausalLM":
        expand = pick([1, 2])
        mamba_heads = pick([n for n in (2, 4, 6, 8) if expand * o["hidden_size"] % n == 0])
        o.update(num_attention_heads=None, num_key_value_heads=None, intermediate_size=None, num_heads=mamba_heads,
                 max_position_embeddings=None, head_dim=expand * o["hidden_size"] // mamba_heads, expand=expand,
                 n_groups=pick([1, 2]), state_size=pick([8, 20]), conv_kernel=pick([2, 4]), use_bias=pick([True, False]),
                 use_conv_bias=pick([True, False]), layer_norm_epsilon=pick([1e-5, 1e-3]))
    if architecture == "FalconH1ForCausalLM":
        def random_multiplier():
            return pick([1.0, rng.uniform(0.5, 1.5)])
        mamba_heads, mamba_head_dim = pick([2, 4, 6]), pick([8, 12])
        o.update(mamba_n_heads=mamba_heads, mamba_d_head=mamba_head_dim, mamba_d_ssm=mamba_heads * mamba_head_dim,
                 mamba_n_groups=pick([1, 2]), mamba_d_state=pick([8, 20]), mamba_d_conv=pick([2, 4]),
                 mamba_conv_bias=pick([True, False]), mamba_proj_bias=pick([True, False]),
                 projectors_bias=pick([True, False]), mamba_rms_norm=pick([True, False]),
                 mamba_norm_before_gate=pick([True, False]), attention_bias=pick([True, False]),
                 mlp_bias=pick([True, False]), head_dim=own_head_dim, ssm_multipliers=[random_multiplier() for _ in range(5)],
                 mlp_multipliers=[random_multiplier() for _ in range(2)],
                 **{name + "_multiplier": random_multiplier() for name in (
                     "attention_in", "attention_out", "key", "ssm_in", "ssm_out", "embedding", "lm_head")})
        rope(rng, o, own_head_dim)
    if architecture == "NemotronHForCausalLM":
        groups = pick([(1, 1), (2, 1), (3, 2)])
        kinds = ["linear_attention", "full_attention", "mlp", "moe"]
        o.update(num_hidden_layers=None, layers_block_type=[pick(kinds) for _ in range(layers + 2)], head_dim=own_head_dim,
                 mamba_num_heads=pick([2, 4, 6]), mamba_head_dim=pick([8, 12]), n_groups=pick([1, 2]),
                 ssm_state_size=pick([8, 20]), conv_kernel=pick([2, 4]), use_bias=pick([True, False]),
                 mlp_bias=pick([True, False]), use_conv_bias=pick([True, False]), time_step_min=pick([0.001, 0.5]),
                 mlp_hidden_act=pick(["relu2", "gelu"]), n_routed_experts=6, n_group=groups[0], topk_group=groups[1],
                 num_experts_per_tok=sparse["num_experts_per_tok"], norm_topk_prob=sparse["norm_topk_prob"],
                 moe_intermediate_size=pick([10, 18]), moe_shared_expert_intermediate_size=pick([14, 20]),
                 moe_latent_size=pick([None, 12, 20]), routed_scaling_factor=pick([1.0, 1.8]), tie_word_embeddings=False)
    if architecture == "Lfm2MoeForCausalLM":
        o.update(num_experts=sparse["num_experts"], num_experts_per_tok=sparse["num_experts_per_tok"],
                 norm_topk_prob=sparse["norm_topk_prob"], moe_intermediate_size=pick([10, 18]),
                 num_dense_layers=pick([0, 1]), use_expert_bias=pick([True, False]), conv_bias=pick([True, False]),
                 conv_L_cache=pick([2, 3, 5]), routed_scaling_factor=pick([1.0, 1.8]),
                 layer_types=[pick(["conv", "full_attention"]) for _ in range(layers)])
        rope(rng, o, dim)
    if architecture == "PhimoeForCausalLM":
        o.update(act, num_local_experts=pick([2, 5, 9]), num_experts_per_tok=2, attention_bias=pick([True, False]),
                 lm_head_bias=pick([True, False]), sliding_window=pick([None, window]),
                 router_jitter_noise=pick([0.01, 0.3]))
        o["rope_parameters"] = dict(rope_type="default", rope_theta=pick([1e4, 300.0]))
    if architecture == "GPTNeoXForCausalLM":
        partial = pick([v for v in (0.25, 0.5, 1.0) if dim * v % 2 == 0 and dim * v >= 2])
        o.update(num_key_value_heads=None, hidden_act=pick(["gelu", "gelu_new", "relu"]),
                 use_parallel_residual=pick([True, False]), attention_bias=pick([True, False]),
                 rope_parameters=dict(rope_type="default", rope_theta=pick([1e4, 300.0]),
                                      partial_rotary_factor=partial))
    if architecture == "FalconForCausalLM":
        is_new = pick([True, False])
        o.update(num_key_value_heads=None, intermediate_size=None, ffn_hidden_size=pick([None, 50]),
                 new_decoder_architecture=is_new, bias=pick([True, False]), multi_query=pick([True, False]),
                 parallel_attn=True if is_new else pick([True, False]), activation=pick(["gelu", "relu"]))
        if is_new:
            o.update(num_kv_heads=kv_heads, num_ln_in_parallel_attn=pick([None, 1, 2]))
    if architecture == "GPT2LMHeadModel":
        o.update(num_key_value_heads=None, intermediate_size=None, n_inner=pick([None, 50]),
                 activation_function=pick(["gelu_new", "gelu", "relu"]), scale_attn_weights=pick([True, False]),
                 scale_attn_by_inverse_layer_idx=pick([True, False]))
    if architecture == "OPTForCausalLM":
        before = pick([True, False])
        o.update(num_key_value_heads=None, intermediate_size=None, ffn_dim=pick([40, 66]),
                 activation_function=pick(["relu", "gelu"]), do_layer_norm_before=before,
                 _remove_final_layer_norm=before and pick([True, False]), enable_bias=pick([True, False]),
                 layer_norm_elementwise_affine=pick([True, True, False]),
                 word_embed_proj_dim=pick([None, 18]))
    return o


def write_tokenizer(directory, vocab_size):
    tokens = {f"t{i}": i for i in range(vocab_size)}
    model = {"type": "BPE", "vocab": tokens, "merges": []}
    (directory / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))


def run(program, directory, prompt, *flags):
    command = [program, "complete", "-m", str(directory), "--prompt-ids", ",".join(map(str, prompt)), "--json", "-t", "0",
               "-n", str(NUM_OUTPUTS), "--ignore-eos", "--prompt-logprobs", "-1", "--max-logprobs", "-1",
               "--num-kv-blocks", "400", *flags]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def prompt_logprobs(answer, length, vocab_size):
    """Returns the program's log-probabilities at the positions before the last one: [length - 1, vocab_size]."""
    rows = torch.full((length - 1, vocab_size), float("nan"), dtype=torch.float64)
    for row, entry in zip(rows, answer["prompt_logprobs"][1:]):
        row[entry["token_id"]] = entry["logprob"]
        for other in entry["top"]:
            row[other["token_id"]] = other["logprob"]
    return rows


def reference(model, prompt):
    """Returns the log-probabilities of transformers in float32 and in bfloat16, the smallest spread (standard
    deviation) of a position's logits, the error of float32 against float64 in spreads, the greedy tokens, and the
    smallest gap between the two best logits of a greedy step, in spreads."""
    ids, gap = list(prompt), float("inf")
    with torch.no_grad():
        for _ in range(NUM_OUTPUTS):
            logits = model(torch.tensor([ids]), use_cache=False).logits[0]
            best = torch.topk(logits[-1].double(), 2)
            gap = min(gap, float((best.values[0] - best.values[1]) / logits[-1].double().std()))
            ids.append(int(best.indices[0]))
        logits = model(torch.tensor([prompt]), use_cache=False).logits[0, :-1].double()
        expected = torch.log_softmax(logits, -1)
        spread = float(logits.std(-1).min())
        exact = model.double()(torch.tensor([prompt]), use_cache=False).logits[0, :-1]
        own_error = float((torch.log_softmax(exact, -1) - expected).abs().max()) / spread
        bfloat16 = model.to(torch.bfloat16)(torch.tensor([prompt]), use_cache=False).logits[0, :-1].double()
    return expected, torch.log_softmax(bfloat16, -1), spread, own_error, ids[len(prompt):], gap


def check(program, architecture, seed, directory):
    rng = random.Random(f"{architecture} {seed}")
    overrides = random_overrides(architecture, rng)
    style = rng.choice(["new", "old"])
    make_model(architecture, overrides, seed).to(torch.bfloat16).save_pretrained(directory)
    is_nested = style == "old" and "VLFor" in architecture
    restyle(directory, {"style": "qwen_vl_old" if is_nested else style}, overrides)
    write_tokenizer(directory, overrides["vocab_size"])
    # transformers reads the same files as the program.
    model_class = library_class(architecture)
    model = model_class.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager",
                                        experts_implementation="eager").eval()
    length = rng.choice([5, 16, 17, 35, 64])
    prompt = [rng.randrange(3, overrides["vocab_size"]) for _ in range(length)]
    expected, bfloat16, spread, own_error, ids, gap = reference(model, prompt)
    worst = 0.0
    for flags in ((), ("-tp", "2"), ("--max-num-batched-tokens", "7")):
        answer = run(program, directory, prompt, "--dtype", "float32", *flags)
        difference = (prompt_logprobs(answer, length, overrides["vocab_size"]) - expected).abs().max()
        worst = max(worst, float("inf") if difference.isnan() else float(difference) / spread)
        if gap > 1e-4 and answer["outputs"][0]["token_ids"] != ids:
            raise RuntimeError(f"greedy tokens {flags}: {answer['outputs'][0]['token_ids']}, expected {ids}")
    answer = run(program, directory, prompt, "--dtype", "bfloat16")
    ours = prompt_logprobs(answer, length, overrides["vocab_size"])
    ours_off, theirs_off = (ours - expected).square().mean(-1), (bfloat16 - expected).square().mean(-1)
    ratio = float((ours_off.mean() / theirs_off.mean()).sqrt())
    has_experts = "num_experts_per_tok" in overrides or "top_k_experts" in overrides
    if has_experts:
        # If rounding changes the choice of an expert, the error jumps by an arbitrary amount. Therefore, use the mean
        # over positions instead of the root mean square. main() checks the mean over checkpoints.
        ratio = float(ours_off.sqrt().mean() / theirs_off.sqrt().mean())
    # A model that amplifies rounding does so in both programs, so transformers' error against float64 raises the limit.
    if not worst <= max(1e-4, 4 * own_error):
        raise RuntimeError(f"log-probabilities differ by {worst:.1e} spreads")
    # On one of a few dozen random models, our error is a little larger than transformers'. main() checks the mean.
    if not ratio <= 1.25 and not has_experts:
        raise RuntimeError(f"the bfloat16 error is {ratio:.2f} times that of transformers")
    best = bfloat16.argmax(-1)
    counts = (int((ours.argmax(-1) == best).sum()), int((expected.argmax(-1) == best).sum()), length - 1)
    return style, worst, own_error, ratio, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("architectures", nargs="*")
    arguments = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    bad = 0
    for architecture in arguments.architectures or FAMILIES:
        same = own = positions = 0
        ratios = []
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            with tempfile.TemporaryDirectory() as name:
                try:
                    style, worst, own_error, ratio, counts = check(arguments.program, architecture, seed,
                                                                   pathlib.Path(name))
                    ratios.append(ratio)
                    same, own, positions = same + counts[0], own + counts[1], positions + counts[2]
                    print(f"{architecture} seed {seed} ({style}): difference {worst:.1e} spreads (transformers' error "
                          f"against float64: {own_error:.1e}), bfloat16 error {ratio:.2f} times transformers'",
                          flush=True)
                except RuntimeError as error:
                    bad += 1
                    print(f"{architecture} seed {seed}: FAILED: {error}", flush=True)
        if ratios and not sum(ratios) / len(ratios) <= 1.0:
            bad += 1
            print(f"{architecture}: FAILED: the mean bfloat16 error is {sum(ratios) / len(ratios):.2f} times that of "
                  "transformers", flush=True)
        if positions:
            print(f"{architecture}: the best token is that of transformers in bfloat16 at {same} of {positions} "
                  f"positions (transformers in float32: {own})", flush=True)
    sys.exit(min(bad, 99))


if __name__ == "__main__":
    main()
