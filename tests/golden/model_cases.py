# Packages: torch, transformers (requirements.txt).
"""Contains tiny configs of every decoder family, one for each switch that changes the arithmetic, and a function that
makes models with random weights. models_golden.py and models_fresh.py import this module."""
import torch
import transformers

SIZES = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=44, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)

# architecture -> (config class, sizes that replace those of SIZES). A size of None is not passed to the class.
FAMILIES = {
    "LlamaForCausalLM": ("LlamaConfig", {}),
    "MistralForCausalLM": ("MistralConfig", {}),
    "GraniteForCausalLM": ("GraniteConfig", {}),
    "Qwen2ForCausalLM": ("Qwen2Config", {}),
    "Qwen3ForCausalLM": ("Qwen3Config", dict(head_dim=12)),
    "GemmaForCausalLM": ("GemmaConfig", dict(head_dim=12)),
    "Gemma2ForCausalLM": ("Gemma2Config", dict(head_dim=12)),
    "Gemma3ForCausalLM": ("Gemma3TextConfig", dict(head_dim=12, num_hidden_layers=3, hidden_size=24)),
    "Gemma3nForCausalLM": ("Gemma3nTextConfig", dict(head_dim=8, num_hidden_layers=3, hidden_size=24, laurel_rank=5,
                                                     hidden_size_per_layer_input=4, vocab_size_per_layer_input=64,
                                                     num_kv_shared_layers=0, intermediate_size=20)),
    "Gemma4ForCausalLM": ("Gemma4TextConfig", dict(head_dim=8, global_head_dim=12, num_hidden_layers=3, hidden_size=24,
                                                   hidden_size_per_layer_input=0, vocab_size_per_layer_input=64,
                                                   tie_word_embeddings=True)),
    "Phi3ForCausalLM": ("Phi3Config", {}),
    "SmolLM3ForCausalLM": ("SmolLM3Config", {}),
    "Olmo2ForCausalLM": ("Olmo2Config", {}),
    "ArceeForCausalLM": ("ArceeConfig", {}),
    "StableLmForCausalLM": ("StableLmConfig", {}),
    "MixtralForCausalLM": ("MixtralConfig", dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=20)),
    "Qwen2MoeForCausalLM": ("Qwen2MoeConfig", dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12,
                                                   shared_expert_intermediate_size=16)),
    "Qwen3MoeForCausalLM": ("Qwen3MoeConfig", dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12,
                                                   head_dim=12)),
    "FalconForCausalLM": ("FalconConfig", dict(num_key_value_heads=None, intermediate_size=None, ffn_hidden_size=48)),
    "GPT2LMHeadModel": ("GPT2Config", dict(num_key_value_heads=None, intermediate_size=None, hidden_size=24)),
    "OPTForCausalLM": ("OPTConfig", dict(num_key_value_heads=None, intermediate_size=None, ffn_dim=48)),
}

SLIDING, FULL = "sliding_attention", "full_attention"
GEMMA4_ROPE = dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=5e3),
                   sliding_attention=dict(rope_type="default", rope_theta=300.0))

SHORT = [1.0 + 0.125 * i for i in range(4)]
LONG = [1.5 + 0.5 * i for i in range(4)]

# name -> (architecture, config overrides, options). Options:
#   "style"          the layout of config.json and the tensor names; see restyle() in models_golden.py
#   "max_model_len"  passed to the engine, if it changes the arithmetic
#   "rope_type"      the name of the RoPE scaling in an old config.json
#   "min_prompt"     the shortest prompt
#   "first_seed"     the seed to try first
CASES = {
    "llama": ("LlamaForCausalLM", {}, {}),
    "mistral": ("MistralForCausalLM", dict(sliding_window=9), {}),
    "mistral_no_window": ("MistralForCausalLM", dict(sliding_window=None, head_dim=12), {}),
    "mistral_old": ("MistralForCausalLM", dict(sliding_window=20, rope_theta=1e5), {"style": "old", "first_seed": 1}),
    "granite": ("GraniteForCausalLM", dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7,
                                           attention_multiplier=0.21), {}),
    "granite_biases": ("GraniteForCausalLM", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True), {}),
    "qwen2": ("Qwen2ForCausalLM", {}, {}),
    "qwen2_tied_old": ("Qwen2ForCausalLM", dict(tie_word_embeddings=True, rope_theta=1e6), {"style": "old"}),
    "qwen2_window": ("Qwen2ForCausalLM", dict(use_sliding_window=True, sliding_window=9, max_window_layers=1), {}),
    "qwen2_window_old": ("Qwen2ForCausalLM", dict(use_sliding_window=True, sliding_window=17, max_window_layers=0),
                         {"style": "old"}),
    "qwen2_yarn": ("Qwen2ForCausalLM", dict(rope_scaling=dict(rope_type="yarn", factor=4.0,
                                                              original_max_position_embeddings=32)), {}),
    "qwen3": ("Qwen3ForCausalLM", {}, {}),
    "qwen3_biases": ("Qwen3ForCausalLM", dict(attention_bias=True, tie_word_embeddings=True), {}),
    "qwen3_window": ("Qwen3ForCausalLM", dict(use_sliding_window=True, sliding_window=16, max_window_layers=1), {}),
    "gemma": ("GemmaForCausalLM", dict(num_key_value_heads=1), {}),
    "gemma_old": ("GemmaForCausalLM", dict(hidden_act="gelu"), {"style": "old"}),
    "gemma2": ("Gemma2ForCausalLM", dict(sliding_window=9, query_pre_attn_scalar=20, attn_logit_softcapping=2.0,
                                         final_logit_softcapping=3.0), {}),
    "gemma2_no_caps": ("Gemma2ForCausalLM", dict(sliding_window=17, attn_logit_softcapping=None,
                                                 final_logit_softcapping=None, query_pre_attn_scalar=12), {}),
    "gemma2_old": ("Gemma2ForCausalLM", dict(sliding_window=16, num_hidden_layers=3, hidden_size=24),
                   {"style": "old"}),
    "gemma3": ("Gemma3ForCausalLM", dict(sliding_window=9, query_pre_attn_scalar=10,
                                         layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                                         rope_parameters=dict(
                                             full_attention=dict(rope_type="linear", factor=4.0, rope_theta=5e4),
                                             sliding_attention=dict(rope_type="default", rope_theta=500.0))), {}),
    "gemma3_old": ("Gemma3ForCausalLM", dict(sliding_window=16, query_pre_attn_scalar=12, sliding_window_pattern=2,
                                             rope_theta=1e5, rope_local_base_freq=300.0,
                                             rope_scaling=dict(rope_type="linear", factor=8.0)), {"style": "old"}),
    "gemma3_caps": ("Gemma3ForCausalLM", dict(sliding_window=9, attn_logit_softcapping=2.0,
                                              final_logit_softcapping=3.0, query_pre_attn_scalar=12,
                                              tie_word_embeddings=False, attention_bias=True,
                                              layer_types=["full_attention", "sliding_attention", "full_attention"]),
                    {}),
    "gemma3_vision": ("Gemma3ForCausalLM", dict(sliding_window=9, query_pre_attn_scalar=12), {"style": "vision"}),
    "gemma3_vision_old": ("Gemma3ForCausalLM", dict(sliding_window=9, query_pre_attn_scalar=12),
                          {"style": "vision_old"}),
    "gemma3n": ("Gemma3nForCausalLM", dict(sliding_window=9, activation_sparsity_pattern=[0.9, 0.0, 0.3],
                                           layer_types=[SLIDING, SLIDING, FULL]), {}),
    "gemma3n_shared_old": ("Gemma3nForCausalLM", dict(sliding_window=17, num_kv_shared_layers=2, num_hidden_layers=4,
                                                      intermediate_size=[14, 20, 20, 14], altup_num_inputs=3,
                                                      altup_active_idx=1, altup_correct_scale=False,
                                                      vocab_size_per_layer_input=50, rope_theta=5e4,
                                                      rope_local_base_freq=300.0,
                                                      activation_sparsity_pattern=[0.0, 0.5, 0.0, 0.8],
                                                      layer_types=[SLIDING, FULL, SLIDING, FULL]), {"style": "old"}),
    "gemma3n_vision": ("Gemma3nForCausalLM", dict(sliding_window=9, final_logit_softcapping=2.0, num_hidden_layers=2,
                                                  num_kv_shared_layers=1, layer_types=[FULL, FULL]),
                       {"style": "vision"}),
    "gemma4": ("Gemma4ForCausalLM", dict(sliding_window=9, final_logit_softcapping=3.0, rope_parameters=GEMMA4_ROPE,
                                         layer_types=[SLIDING, SLIDING, FULL]), {}),
    "gemma4_k_eq_v": ("Gemma4ForCausalLM", dict(sliding_window=9, attention_k_eq_v=True, num_global_key_value_heads=1,
                                                attention_bias=True, num_hidden_layers=4, intermediate_size=30,
                                                layer_types=[SLIDING, FULL, SLIDING, FULL]), {}),
    "gemma4_shared": ("Gemma4ForCausalLM", dict(sliding_window=9, num_kv_shared_layers=3, use_double_wide_mlp=True,
                                                hidden_size_per_layer_input=6, num_hidden_layers=6,
                                                intermediate_size=14, rope_parameters=GEMMA4_ROPE,
                                                layer_types=[SLIDING, FULL, SLIDING, SLIDING, SLIDING, FULL]),
                      {"first_seed": 16}),
    "gemma4_moe": ("Gemma4ForCausalLM", dict(sliding_window=9, enable_moe_block=True, num_experts=4, top_k_experts=2,
                                             moe_intermediate_size=10, intermediate_size=20, num_hidden_layers=2,
                                             tie_word_embeddings=False, layer_types=[SLIDING, FULL]),
                   {"first_seed": 6}),
    "gemma4_old": ("Gemma4ForCausalLM", dict(sliding_window=17, num_kv_shared_layers=2, attention_k_eq_v=True,
                                             num_global_key_value_heads=1, hidden_size_per_layer_input=4,
                                             intermediate_size=20, num_hidden_layers=4,
                                             layer_types=[SLIDING, FULL, SLIDING, FULL]), {"style": "old"}),
    "gemma4_vision": ("Gemma4ForCausalLM", dict(sliding_window=9, hidden_size_per_layer_input=4,
                                                layer_types=[FULL, SLIDING, FULL]),
                      {"style": "vision", "first_seed": 12}),
    "phi3": ("Phi3ForCausalLM", {}, {}),
    "phi3_window": ("Phi3ForCausalLM", dict(sliding_window=9, num_key_value_heads=4, tie_word_embeddings=True), {}),
    "phi3_partial": ("Phi3ForCausalLM", dict(partial_rotary_factor=0.75), {}),
    "phi3_long": ("Phi3ForCausalLM", dict(original_max_position_embeddings=4,
                                          rope_scaling=dict(rope_type="longrope", short_factor=SHORT,
                                                            long_factor=LONG, original_max_position_embeddings=4)),
                  {"min_prompt": 5}),
    "phi3_short_old": ("Phi3ForCausalLM", dict(original_max_position_embeddings=128, max_position_embeddings=512,
                                               rope_scaling=dict(rope_type="longrope", short_factor=SHORT,
                                                                 long_factor=LONG,
                                                                 original_max_position_embeddings=128)),
                       {"style": "old", "max_model_len": 128, "rope_type": "su"}),
    "phi3_long_partial": ("Phi3ForCausalLM", dict(original_max_position_embeddings=4, partial_rotary_factor=0.75,
                                                  rope_scaling=dict(rope_type="longrope", short_factor=SHORT[:3],
                                                                    long_factor=LONG[:3],
                                                                    original_max_position_embeddings=4)),
                          {"min_prompt": 5}),
    "smollm3": ("SmolLM3ForCausalLM", dict(no_rope_layer_interval=2), {}),
    "smollm3_list": ("SmolLM3ForCausalLM", dict(no_rope_layers=[0, 1], attention_bias=True, mlp_bias=True,
                                                tie_word_embeddings=False), {}),
    "smollm3_window": ("SmolLM3ForCausalLM", dict(no_rope_layers=[1, 0], use_sliding_window=True, sliding_window=9),
                       {"style": "old"}),
    "olmo2": ("Olmo2ForCausalLM", {}, {}),
    "olmo2_biases": ("Olmo2ForCausalLM", dict(attention_bias=True, num_key_value_heads=4, rope_theta=5e5), {}),
    "olmo2_one_kv_head": ("Olmo2ForCausalLM", dict(num_key_value_heads=1, tie_word_embeddings=True), {}),
    "arcee": ("ArceeForCausalLM", {}, {}),
    "arcee_biases": ("ArceeForCausalLM", dict(attention_bias=True, mlp_bias=True, head_dim=12,
                                              tie_word_embeddings=True), {}),
    "arcee_yarn_old": ("ArceeForCausalLM", dict(rope_scaling=dict(rope_type="yarn", factor=4.0, mscale=1.0,
                                                                  original_max_position_embeddings=32)),
                       {"style": "old"}),
    "stablelm": ("StableLmForCausalLM", {}, {}),
    "stablelm_parallel": ("StableLmForCausalLM", dict(use_parallel_residual=True, use_qkv_bias=True,
                                                      partial_rotary_factor=0.5), {}),
    "stablelm_qk_norm_old": ("StableLmForCausalLM", dict(qk_layernorm=True, partial_rotary_factor=1.0,
                                                         rope_theta=500.0), {"style": "old"}),
    "mixtral": ("MixtralForCausalLM", {}, {}),
    "mixtral_window": ("MixtralForCausalLM", dict(sliding_window=9, num_experts_per_tok=1), {"style": "old"}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", dict(qkv_bias=True, num_experts_per_tok=3), {}),
    "qwen2_moe_sparse_step": ("Qwen2MoeForCausalLM", dict(decoder_sparse_step=2, norm_topk_prob=True, qkv_bias=False,
                                                          use_sliding_window=True, sliding_window=9,
                                                          max_window_layers=2), {}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", dict(norm_topk_prob=True), {}),
    "qwen3_moe_mlp_only": ("Qwen3MoeForCausalLM", dict(mlp_only_layers=[0], attention_bias=True,
                                                       use_sliding_window=True, sliding_window=9), {"style": "old"}),
    "falcon_7b": ("FalconForCausalLM", dict(multi_query=True), {}),
    "falcon_40b": ("FalconForCausalLM", dict(new_decoder_architecture=True, num_kv_heads=2), {}),
    "falcon_11b": ("FalconForCausalLM", dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1,
                                             activation="relu"), {"style": "old"}),
    "falcon_sequential": ("FalconForCausalLM", dict(multi_query=False, parallel_attn=False, bias=True,
                                                    ffn_hidden_size=None), {}),
    "gpt2": ("GPT2LMHeadModel", {}, {}),
    "gpt2_old": ("GPT2LMHeadModel", dict(n_inner=40), {"style": "old"}),
    "gpt2_scales": ("GPT2LMHeadModel", dict(scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True,
                                            activation_function="gelu", num_attention_heads=8), {}),
    "opt": ("OPTForCausalLM", {}, {}),
    "opt_350m": ("OPTForCausalLM", dict(do_layer_norm_before=False, word_embed_proj_dim=16), {}),
    "opt_old": ("OPTForCausalLM", dict(activation_function="gelu"), {"style": "old"}),
    "opt_no_biases": ("OPTForCausalLM", dict(enable_bias=False, layer_norm_elementwise_affine=False), {}),
    "opt_no_final_norm": ("OPTForCausalLM", dict(_remove_final_layer_norm=True, tie_word_embeddings=False), {}),
    "llava": ("LlamaForCausalLM", dict(rope_theta=1e5), {"style": "llava"}),
}


def make_config(architecture, overrides):
    config_name, family_sizes = FAMILIES[architecture]
    sizes = {k: v for k, v in {**SIZES, **family_sizes, **overrides}.items() if v is not None or k in overrides}
    config = getattr(transformers, config_name)(**sizes)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    return config


def make_model(architecture, overrides, seed):
    """Returns a model with random weights that bfloat16 represents exactly, so that small files are enough. The rows
    of the token tables have different norms, as in trained models. Otherwise the two best logits would often be so
    close that bfloat16 rounding chooses between them."""
    torch.manual_seed(seed)
    model = getattr(transformers, architecture)(make_config(architecture, overrides)).eval()
    is_gemma = architecture.startswith("Gemma")
    # The norms of Gemma 1 to 3 add 1 to their weights.
    norm_offset = 0.0 if architecture in ("GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM") else 1.0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name or ".ln_" in name
            is_token_table = any(part in name for part in ("embed_tokens", "word_embeddings", "wte", "lm_head"))
            values = torch.randn_like(parameter)
            if is_token_table:
                # Gemma multiplies the embedding by sqrt(hidden_size).
                values *= (0.15 if is_gemma else 0.4) * torch.exp(0.8 * torch.randn(parameter.shape[0], 1))
            elif is_norm or name.endswith("scale"):
                values = values * 0.3 + (0.0 if name.endswith(".bias") else norm_offset)
            else:
                values *= 0.17
            parameter.copy_(values.to(torch.bfloat16).to(torch.float32))
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.copy_((0.5 + torch.rand_like(buffer)).to(torch.bfloat16).to(torch.float32))
    return model
