# Packages: torch, transformers (requirements.txt).
"""Contains tiny configs of every decoder family, one for each switch that changes the arithmetic, and a function that
makes models with random weights. models_golden.py and models_fresh.py import this module."""
import torch
import transformers

import bailing_moe

SIZES = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=44, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)

LINEAR_HEADS = dict(hidden_size=24, num_hidden_layers=3, intermediate_size=36, head_dim=16, linear_num_key_heads=2,
                    linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=20,
                    layer_types=["linear_attention", "full_attention", "linear_attention"])

LATENT = dict(hidden_size=24, num_key_value_heads=4, intermediate_size=20, kv_lora_rank=20, q_lora_rank=12,
              qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, num_experts_per_tok=2, moe_intermediate_size=10)

# architecture -> (config class, sizes that replace those of SIZES). A size of None is not passed to the class.
MROPE = dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 2, 2])
# The parts of Qwen-VL that read images. Only text is compared.
QWEN_VISION = {
    "Qwen2VLConfig": dict(depth=1, embed_dim=8, hidden_size=32, num_heads=2, mlp_ratio=1, patch_size=2),
    "Qwen2_5_VLConfig": dict(depth=1, hidden_size=8, out_hidden_size=32, intermediate_size=8, num_heads=2, patch_size=2),
    "Qwen3VLMoeConfig": dict(depth=1, hidden_size=8, out_hidden_size=32, intermediate_size=8, num_heads=2, patch_size=2,
                             num_position_embeddings=4, deepstack_visual_indexes=[0]),
    "Qwen3VLConfig": dict(depth=1, hidden_size=8, out_hidden_size=32, intermediate_size=8, num_heads=2, patch_size=2,
                          num_position_embeddings=4, deepstack_visual_indexes=[0]),
}
FAMILIES = {
    "LlamaForCausalLM": ("LlamaConfig", {}),
    "MistralForCausalLM": ("MistralConfig", {}),
    "GraniteForCausalLM": ("GraniteConfig", {}),
    "Qwen2ForCausalLM": ("Qwen2Config", {}),
    "Qwen2VLForConditionalGeneration": ("Qwen2VLConfig", dict(rope_parameters=dict(MROPE, mrope_section=[2, 1, 1]))),
    "Qwen2_5_VLForConditionalGeneration": ("Qwen2_5_VLConfig", dict(rope_parameters=dict(MROPE, mrope_section=[2, 1, 1]))),
    "Qwen3VLMoeForConditionalGeneration": ("Qwen3VLMoeConfig", dict(
        head_dim=12, rope_parameters=MROPE, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=10)),
    "Qwen3VLForConditionalGeneration": ("Qwen3VLConfig", dict(head_dim=12, rope_parameters=MROPE)),
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
    "Qwen3NextForCausalLM": ("Qwen3NextConfig", dict(LINEAR_HEADS, num_experts=4, num_experts_per_tok=2,
                                                     moe_intermediate_size=12, shared_expert_intermediate_size=16)),
    "Qwen3_5ForCausalLM": ("Qwen3_5TextConfig", LINEAR_HEADS),
    "Qwen3_5MoeForCausalLM": ("Qwen3_5MoeTextConfig", dict(LINEAR_HEADS, num_experts=4, num_experts_per_tok=2,
                                                           intermediate_size=None, moe_intermediate_size=12,
                                                           shared_expert_intermediate_size=16)),
    "Lfm2ForCausalLM": ("Lfm2Config", dict(num_hidden_layers=3, block_multiple_of=4, hidden_size=24,
                                           layer_types=["conv", "full_attention", "conv"])),
    "GptOssForCausalLM": ("GptOssConfig", dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=20,
                                               head_dim=12, sliding_window=9)),
    "OlmoeForCausalLM": ("OlmoeConfig", dict(num_experts=4, num_experts_per_tok=2, intermediate_size=12)),
    "Olmo3ForCausalLM": ("Olmo3Config", dict(num_hidden_layers=3, hidden_size=24, sliding_window=9)),
    "SeedOssForCausalLM": ("SeedOssConfig", dict(head_dim=12)),
    "Starcoder2ForCausalLM": ("Starcoder2Config", {}),
    "Ernie4_5ForCausalLM": ("Ernie4_5Config", dict(head_dim=12)),
    "GlmForCausalLM": ("GlmConfig", dict(head_dim=12, pad_token_id=0)),
    "Glm4ForCausalLM": ("Glm4Config", dict(head_dim=12, pad_token_id=0)),
    "Ministral3ForCausalLM": ("Ministral3Config", dict(head_dim=12)),
    "Exaone4ForCausalLM": ("Exaone4Config", dict(head_dim=12, sliding_window=9)),
    "HunYuanDenseV1ForCausalLM": ("HunYuanDenseV1Config", dict(head_dim=12)),
    "HeliumForCausalLM": ("HeliumConfig", dict(head_dim=8)),
    "NemotronForCausalLM": ("NemotronConfig", dict(head_dim=12)),
    "Ernie4_5_MoeForCausalLM": ("Ernie4_5_MoeConfig", dict(moe_num_experts=4, moe_k=2, moe_intermediate_size=12)),
    "Glm4MoeForCausalLM": ("Glm4MoeConfig", dict(head_dim=8, n_routed_experts=4, num_experts_per_tok=2,
                                                 moe_intermediate_size=12)),
    "BailingMoeForCausalLM": ("BailingMoeConfig", dict(head_dim=12, num_experts=4, num_experts_per_tok=2,
                                                       moe_intermediate_size=12)),
    "BailingMoeV2ForCausalLM": ("BailingMoeV2Config", dict(head_dim=12, num_experts=8, num_experts_per_tok=3, n_group=4,
                                                           topk_group=2, moe_intermediate_size=12)),
    "DeepseekV2ForCausalLM": ("DeepseekV2Config", dict(LATENT, n_routed_experts=6, n_shared_experts=2)),
    "DeepseekV3ForCausalLM": ("DeepseekV3Config", dict(LATENT, n_routed_experts=6, n_shared_experts=1, n_group=3,
                                                       topk_group=2, first_k_dense_replace=1)),
    "Glm4MoeLiteForCausalLM": ("Glm4MoeLiteConfig", dict(LATENT, n_routed_experts=4, n_shared_experts=1)),
    "GraniteMoeForCausalLM": ("GraniteMoeConfig", dict(num_local_experts=4, num_experts_per_tok=2,
                                                       intermediate_size=12)),
    "GraniteMoeSharedForCausalLM": ("GraniteMoeSharedConfig", dict(num_local_experts=4, num_experts_per_tok=2,
                                                                   intermediate_size=12, shared_intermediate_size=16)),
    "GraniteMoeHybridForCausalLM": ("GraniteMoeHybridConfig", dict(
        num_local_experts=4, num_experts_per_tok=2, intermediate_size=12, shared_intermediate_size=16,
        mamba_n_heads=1, mamba_expand=1, layer_types=["full_attention"] * 2)),
    "Mamba2ForCausalLM": ("Mamba2Config", dict(
        num_attention_heads=None, num_key_value_heads=None, intermediate_size=None, max_position_embeddings=None,
        num_hidden_layers=3, num_heads=4, head_dim=16, state_size=12, n_groups=1)),
    "FalconH1ForCausalLM": ("FalconH1Config", dict(mamba_d_ssm=48, mamba_n_heads=4, mamba_d_head=12, mamba_d_state=10)),
    "NemotronHForCausalLM": ("NemotronHConfig", dict(
        num_hidden_layers=None, head_dim=12, mamba_num_heads=4, mamba_head_dim=12, ssm_state_size=10, n_groups=2,
        n_routed_experts=4, moe_intermediate_size=12, moe_shared_expert_intermediate_size=20,
        layers_block_type=["linear_attention", "mlp", "full_attention", "linear_attention", "mlp"])),
    "Lfm2MoeForCausalLM": ("Lfm2MoeConfig", dict(
        num_hidden_layers=3, hidden_size=24, layer_types=["conv", "full_attention", "conv"], num_dense_layers=1,
        num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12)),
    "PhimoeForCausalLM": ("PhimoeConfig", dict(num_local_experts=4, num_experts_per_tok=2, intermediate_size=12)),
    "GPTNeoXForCausalLM": ("GPTNeoXConfig", dict(num_key_value_heads=None)),
    "FalconForCausalLM": ("FalconConfig", dict(num_key_value_heads=None, intermediate_size=None, ffn_hidden_size=48)),
    "GPT2LMHeadModel": ("GPT2Config", dict(num_key_value_heads=None, intermediate_size=None, hidden_size=24)),
    "OPTForCausalLM": ("OPTConfig", dict(num_key_value_heads=None, intermediate_size=None, ffn_dim=48)),
}

SLIDING, FULL = "sliding_attention", "full_attention"
GEMMA4_ROPE = dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=5e3),
                   sliding_attention=dict(rope_type="default", rope_theta=300.0))

FALCON_H1_MULTIPLIERS = dict(
    attention_in_multiplier=0.8, attention_out_multiplier=0.9, key_multiplier=0.6, ssm_in_multiplier=1.3,
    ssm_out_multiplier=0.7, ssm_multipliers=[0.9, 1.2, 0.8, 1.1, 0.7], mlp_multipliers=[0.7, 1.4],
    embedding_multiplier=3.0, lm_head_multiplier=0.6)

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
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", {}, {}),
    "qwen2_vl_old": ("Qwen2VLForConditionalGeneration", dict(num_key_value_heads=1, tie_word_embeddings=True),
                     {"style": "qwen_vl_old"}),
    "qwen2_5_vl_old": ("Qwen2_5_VLForConditionalGeneration", {}, {"style": "qwen_vl_old"}),
    "qwen3_vl": ("Qwen3VLForConditionalGeneration", dict(tie_word_embeddings=True), {}),
    "qwen3_vl_old": ("Qwen3VLForConditionalGeneration", dict(num_key_value_heads=1), {"style": "qwen_vl_old"}),
    "qwen3_vl_moe": ("Qwen3VLMoeForConditionalGeneration", dict(tie_word_embeddings=False), {}),
    "qwen3_vl_moe_old": ("Qwen3VLMoeForConditionalGeneration", dict(num_key_value_heads=1, mlp_only_layers=[1]),
                         {"style": "qwen_vl_old"}),
    "qwen3_next": ("Qwen3NextForCausalLM", {}, {}),
    "qwen3_next_old": ("Qwen3NextForCausalLM", dict(full_attention_interval=2, layer_types=None, mlp_only_layers=[1],
                                                    partial_rotary_factor=0.5, norm_topk_prob=False),
                       {"style": "old"}),
    "qwen3_5": ("Qwen3_5ForCausalLM", {}, {}),
    "qwen3_5_taps": ("Qwen3_5ForCausalLM", dict(linear_conv_kernel_dim=2, linear_num_key_heads=4,
                                                linear_value_head_dim=16, linear_key_head_dim=17,
                                                tie_word_embeddings=True), {}),
    "qwen3_5_vision": ("Qwen3_5ForCausalLM", dict(linear_num_key_heads=1, num_key_value_heads=1),
                       {"style": "qwen_vision"}),
    "qwen3_5_moe": ("Qwen3_5MoeForCausalLM", {}, {"style": "stacked_experts", "first_seed": 8}),
    "lfm2": ("Lfm2ForCausalLM", {}, {}),
    "lfm2_biases_old": ("Lfm2ForCausalLM", dict(full_attn_idxs=[0, 2], layer_types=None, conv_bias=True, conv_L_cache=4,
                                                block_auto_adjust_ff_dim=False, tie_word_embeddings=False),
                        {"style": "old"}),
    "gpt_oss_moe": ("GptOssForCausalLM", {}, {"first_seed": 1}),
    "gpt_oss_moe_clamped": ("GptOssForCausalLM", dict(swiglu_limit=0.5, swiglu_alpha=1.2, num_experts_per_tok=3,
                                                      attention_bias=False, rope_parameters=dict(rope_theta=500.0),
                                                      layer_types=["full_attention", "sliding_attention"]), {}),
    "gpt_oss_moe_old": ("GptOssForCausalLM", dict(num_key_value_heads=1, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=32, truncate=False)), {"style": "old", "first_seed": 1}),
    "gpt_oss_moe_mxfp4": ("GptOssForCausalLM", dict(intermediate_size=32), {"style": "mxfp4"}),
    "olmoe": ("OlmoeForCausalLM", {}, {}),
    "olmoe_clipped_old": ("OlmoeForCausalLM", dict(clip_qkv=0.6, norm_topk_prob=True, attention_bias=True,
                                                   rope_theta=500.0), {"style": "old"}),
    "olmo3": ("Olmo3ForCausalLM", dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                                       rope_parameters=dict(
                                           full_attention=dict(rope_type="yarn", factor=4.0, rope_theta=3e3,
                                                               original_max_position_embeddings=32),
                                           sliding_attention=dict(rope_type="default", rope_theta=500.0))), {}),
    "olmo3_old": ("Olmo3ForCausalLM", dict(num_hidden_layers=4, intermediate_size=32, sliding_window=17, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=32)), {"style": "old"}),
    "seed_oss": ("SeedOssForCausalLM", {}, {}),
    "seed_oss_biases_old": ("SeedOssForCausalLM", dict(attention_bias=False, attention_out_bias=True, mlp_bias=True,
                                                       tie_word_embeddings=True), {"style": "old"}),
    "starcoder2": ("Starcoder2ForCausalLM", {}, {}),
    "starcoder2_window_old": ("Starcoder2ForCausalLM", dict(use_bias=False, sliding_window=9, hidden_act="gelu",
                                                            tie_word_embeddings=False, rope_theta=500.0,
                                                            norm_epsilon=1e-3), {"style": "old"}),
    "ernie4_5": ("Ernie4_5ForCausalLM", {}, {}),
    "ernie4_5_biases_old": ("Ernie4_5ForCausalLM", dict(use_bias=True, tie_word_embeddings=False, rope_theta=500.0),
                            {"style": "old"}),
    "glm": ("GlmForCausalLM", dict(head_dim=8), {}),
    "glm_no_biases_old": ("GlmForCausalLM", dict(attention_bias=False, partial_rotary_factor=1.0), {"style": "old"}),
    "glm4": ("Glm4ForCausalLM", dict(head_dim=8), {}),
    "glm4_yarn_old": ("Glm4ForCausalLM", dict(attention_bias=False, head_dim=16, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=32)), {"style": "old"}),
    "ministral3": ("Ministral3ForCausalLM", dict(rope_parameters=dict(
        rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=32, beta_fast=32.0, beta_slow=1.0,
        mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5)), {}),
    "ministral3_window_old": ("Ministral3ForCausalLM", dict(sliding_window=20, tie_word_embeddings=True, rope_parameters=dict(
        rope_type="yarn", rope_theta=500.0, factor=8.0, original_max_position_embeddings=32, llama_4_scaling_beta=0.3)),
                              {"style": "old"}),
    "ministral3_vision": ("Ministral3ForCausalLM", dict(rope_parameters=dict(
        rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=32, mscale=1.0, mscale_all_dim=1.0,
        llama_4_scaling_beta=0.1)), {"style": "mistral3"}),
    "exaone4": ("Exaone4ForCausalLM", dict(layer_types=["sliding_attention", "full_attention"]), {}),
    "exaone4_old": ("Exaone4ForCausalLM", dict(num_hidden_layers=4, hidden_size=24, intermediate_size=28, sliding_window=17,
                                               tie_word_embeddings=True), {"style": "old"}),
    "exaone4_full": ("Exaone4ForCausalLM", dict(sliding_window=None, rope_scaling=dict(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32),
        layer_types=["full_attention", "full_attention"]), {}),
    "hunyuan_dense": ("HunYuanDenseV1ForCausalLM", dict(tie_word_embeddings=True), {}),
    "hunyuan_dense_alpha_old": ("HunYuanDenseV1ForCausalLM", dict(attention_bias=True, rope_theta=500.0, rope_scaling=dict(
        rope_type="dynamic", alpha=50.0, factor=1.0)), {"style": "old"}),
    "helium": ("HeliumForCausalLM", {}, {}),
    "helium_biases_old": ("HeliumForCausalLM", dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                                                    rope_theta=500.0), {"style": "old"}),
    "nemotron": ("NemotronForCausalLM", {}, {}),
    "nemotron_biases_old": ("NemotronForCausalLM", dict(attention_bias=True, mlp_bias=True, hidden_act="gelu",
                                                        tie_word_embeddings=True, partial_rotary_factor=1.0,
                                                        rope_theta=500.0), {"style": "old"}),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", dict(moe_num_shared_experts=1), {}),
    "ernie4_5_moe_old": ("Ernie4_5_MoeForCausalLM", dict(
        num_hidden_layers=3, hidden_size=24, moe_layer_start_index=0, moe_layer_interval=2, moe_norm_min=0.7,
        moe_k=1, tie_word_embeddings=False, rope_theta=500.0), {"style": "old"}),
    "glm4_moe": ("Glm4MoeForCausalLM", dict(use_qk_norm=True, routed_scaling_factor=2.5), {}),
    "glm4_moe_groups_old": ("Glm4MoeForCausalLM", dict(
        n_routed_experts=6, n_group=3, topk_group=2, norm_topk_prob=False, attention_bias=True, n_shared_experts=2,
        first_k_dense_replace=0, num_hidden_layers=2, hidden_size=24, rope_theta=500.0), {"style": "old"}),
    "bailing_moe": ("BailingMoeForCausalLM", dict(num_shared_experts=2), {"style": "old"}),
    "bailing_moe_biases": ("BailingMoeForCausalLM", dict(
        use_qkv_bias=True, use_bias=True, norm_topk_prob=False, first_k_dense_replace=1, tie_word_embeddings=True,
        num_key_value_heads=1, num_shared_experts=0, num_experts_per_tok=3,
        rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=2.5)), {}),
    "bailing_moe_v2": ("BailingMoeV2ForCausalLM", dict(routed_scaling_factor=2.5), {"style": "old"}),
    "bailing_moe_v2_biases": ("BailingMoeV2ForCausalLM", dict(
        use_qkv_bias=True, use_bias=True, use_qk_norm=False, first_k_dense_replace=0, partial_rotary_factor=1.0,
        num_experts_per_tok=1, num_experts=6, n_group=3, topk_group=1, num_shared_experts=2, routed_scaling_factor=1.5,
        hidden_size=24, rope_parameters=dict(rope_theta=500.0)), {}),
    "deepseek_v2": ("DeepseekV2ForCausalLM", dict(q_lora_rank=None, first_k_dense_replace=1,
                                                  routed_scaling_factor=1.5), {}),
    "deepseek_v2_groups_old": ("DeepseekV2ForCausalLM", dict(
        topk_method="group_limited_greedy", n_group=3, topk_group=2, routed_scaling_factor=4.0, attention_bias=True,
        mlp_bias=True, tie_word_embeddings=True, qk_rope_head_dim=8, v_head_dim=14, rms_norm_eps=1e-5,
        rope_scaling=dict(rope_type="yarn", factor=8.0, mscale=0.707, mscale_all_dim=0.707, beta_fast=32, beta_slow=1,
                          original_max_position_embeddings=16)), {"style": "old"}),
    "deepseek_v2_normalized": ("DeepseekV2ForCausalLM", dict(norm_topk_prob=True, first_k_dense_replace=1,
                                                             num_experts_per_tok=3), {}),
    "deepseek_v3": ("DeepseekV3ForCausalLM", dict(
        routed_scaling_factor=2.5, rope_scaling=dict(rope_type="yarn", factor=4.0, mscale=1.0, mscale_all_dim=0.5,
                                                     original_max_position_embeddings=32)), {}),
    "deepseek_v3_rotated_halves_old": ("DeepseekV3ForCausalLM", dict(
        rope_interleave=False, q_lora_rank=None, norm_topk_prob=False, attention_bias=True, first_k_dense_replace=0,
        kv_lora_rank=32, qk_rope_head_dim=8, rope_theta=500.0), {"style": "old"}),
    "glm4_moe_lite": ("Glm4MoeLiteForCausalLM", dict(routed_scaling_factor=1.8), {}),
    "glm4_moe_lite_old": ("Glm4MoeLiteForCausalLM", dict(
        hidden_size=20, num_attention_heads=6, num_key_value_heads=6, n_group=2, topk_group=1, n_shared_experts=2,
        qk_nope_head_dim=7, v_head_dim=16, mlp_layer_types=["sparse", "dense"], rope_theta=500.0),
                          {"style": "old"}),
    "granite_moe": ("GraniteMoeForCausalLM", dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7, attention_multiplier=0.21), {}),
    "granite_moe_shared_old": ("GraniteMoeSharedForCausalLM", dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7, attention_multiplier=0.21,
                                                                   attention_bias=True, tie_word_embeddings=True,
                                                                   rope_theta=500.0), {"style": "old"}),
    "granite_moe_hybrid": ("GraniteMoeHybridForCausalLM", dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7, attention_multiplier=0.21), {}),
    "granite_moe_hybrid_dense": ("GraniteMoeHybridForCausalLM", dict(embedding_multiplier=6.0, residual_multiplier=0.22, logits_scaling=0.7, attention_multiplier=0.21,
                                                                     num_local_experts=0, shared_intermediate_size=28,
                                                                     position_embedding_type="rope"), {}),
    "granite_hybrid": ("GraniteMoeHybridForCausalLM", dict(
        num_hidden_layers=3, layer_types=["linear_attention", "full_attention", "linear_attention"], mamba_n_heads=4,
        mamba_expand=2, mamba_d_state=12), {}),
    "granite_hybrid_groups_old": ("GraniteMoeHybridForCausalLM", dict(
        num_local_experts=0, layer_types=["linear_attention", "full_attention"], mamba_n_heads=8, mamba_expand=1,
        mamba_d_state=20, mamba_n_groups=2, mamba_d_conv=3, mamba_conv_bias=False, mamba_proj_bias=True,
        residual_multiplier=0.22, tie_word_embeddings=True), {"style": "old"}),
    "mamba2": ("Mamba2ForCausalLM", {}, {}),
    "mamba2_groups_old": ("Mamba2ForCausalLM", dict(n_groups=2, head_dim=8, num_heads=8, use_bias=True,
                                                    use_conv_bias=False, conv_kernel=3, layer_norm_epsilon=1e-3),
                          {"style": "old"}),
    "falcon_h1": ("FalconH1ForCausalLM", FALCON_H1_MULTIPLIERS, {}),
    "falcon_h1_norm_old": ("FalconH1ForCausalLM", dict(
        mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_n_groups=2, mamba_d_ssm=None, mamba_d_head="auto",
        mamba_n_heads=8, mamba_proj_bias=True, attention_bias=True, head_dim=12, rope_theta=500.0,
        tie_word_embeddings=True), {"style": "old"}),
    "falcon_h1_biases": ("FalconH1ForCausalLM", dict(
        mamba_rms_norm=True, mamba_norm_before_gate=False, mlp_bias=True, projectors_bias=True, mamba_conv_bias=False,
        num_key_value_heads=1), {}),
    "nemotron_h": ("NemotronHForCausalLM", {}, {}),
    "nemotron_h_biases_old": ("NemotronHForCausalLM", dict(
        layers_block_type=["linear_attention", "full_attention", "mlp"], n_groups=1, use_bias=True, mlp_bias=True,
        use_conv_bias=False, conv_kernel=3, time_step_min=0.7, layer_norm_epsilon=1e-3), {"style": "old"}),
    "nemotron_h_moe": ("NemotronHForCausalLM", dict(
        layers_block_type=["linear_attention", "moe", "full_attention", "moe"], routed_scaling_factor=1.5), {}),
    "nemotron_h_moe_latent_old": ("NemotronHForCausalLM", dict(
        layers_block_type=["linear_attention", "moe", "full_attention"], moe_latent_size=20, n_routed_experts=6,
        n_group=3, topk_group=2, norm_topk_prob=False), {"style": "old", "first_seed": 1}),
    "lfm2_moe": ("Lfm2MoeForCausalLM", dict(routed_scaling_factor=1.5), {}),
    "lfm2_moe_old": ("Lfm2MoeForCausalLM", dict(
        num_dense_layers=0, use_expert_bias=False, norm_topk_prob=False, conv_bias=True, conv_L_cache=4,
        num_experts_per_tok=3, tie_word_embeddings=False, rope_theta=500.0), {"style": "old"}),
    "phimoe": ("PhimoeForCausalLM", dict(attention_bias=True, lm_head_bias=True, router_jitter_noise=0.2), {"first_seed": 5}),
    "phimoe_short_old": ("PhimoeForCausalLM", dict(
        sliding_window=9, router_jitter_noise=0.5, max_position_embeddings=512, original_max_position_embeddings=128,
        rope_parameters=dict(rope_type="longrope", rope_theta=1e4, short_factor=SHORT, long_factor=LONG, factor=4.0,
                             short_mscale=1.2, long_mscale=1.4, original_max_position_embeddings=128)),
                         {"style": "old", "max_model_len": 128}),
    "gpt_neox": ("GPTNeoXForCausalLM", dict(hidden_act="gelu"), {}),
    "gpt_neox_sequential_old": ("GPTNeoXForCausalLM", dict(hidden_act="gelu", use_parallel_residual=False,
                                                           attention_bias=False, rope_parameters=dict(
                                                               rope_type="default", rope_theta=500.0,
                                                               partial_rotary_factor=0.5)), {"style": "old"}),
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


def library_class(name):
    return getattr(bailing_moe, name) if name.startswith("BailingMoe") else getattr(transformers, name)


def make_config(architecture, overrides):
    config_name, family_sizes = FAMILIES[architecture]
    sizes = {k: v for k, v in {**SIZES, **family_sizes, **overrides}.items() if v is not None or k in overrides}
    if config_name in QWEN_VISION:
        sizes = dict(text_config=sizes, vision_config=QWEN_VISION[config_name],
                     tie_word_embeddings=sizes.get("tie_word_embeddings", False))
    config = library_class(config_name)(**sizes)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    return config


MXFP4_VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def to_mxfp4(weights):
    """Returns the blocks [..., n, k / 32, 16] and scales [..., n, k / 32] of weights [..., n, k], and the values that
    they represent. Values that MXFP4 represents stay the same."""
    parts = weights.to(torch.float32).unflatten(-1, (-1, 32))
    exponent = torch.floor(torch.log2(parts.abs().amax(-1))) - 2
    scaled = parts * torch.exp2(-exponent)[..., None]
    magnitude = (scaled.abs()[..., None] - MXFP4_VALUES).abs().argmin(-1)
    codes = magnitude + 8 * (scaled < 0)
    values = MXFP4_VALUES[magnitude] * torch.sign(scaled) * torch.exp2(exponent)[..., None]
    blocks = (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8)
    return blocks, (exponent + 127).to(torch.uint8), values.flatten(-2)


def round_to_mxfp4(model):
    """Rounds the experts' matrices of a gpt-oss model, [experts, in, out], to values that MXFP4 represents."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                parameter.copy_(to_mxfp4(parameter.transpose(1, 2))[2].transpose(1, 2))


def normalize_experts(module, inputs, outputs):
    """Scales the weights of a token's experts to sum to 1, as DeepSeek's own code and vLLM do with norm_topk_prob.
    transformers ignores this setting in DeepSeek-V2."""
    logits, weights, experts = outputs
    return logits, weights / (weights.sum(-1, keepdim=True) + 1e-20), experts


def make_model(architecture, overrides, seed):
    """Returns a model with random weights that bfloat16 represents exactly, so that small files are enough. The rows
    of the token tables have different norms, as in trained models. Otherwise the two best logits would often be so
    close that bfloat16 rounding chooses between them."""
    torch.manual_seed(seed)
    model = library_class(architecture)(make_config(architecture, overrides)).eval()
    if architecture == "DeepseekV2ForCausalLM" and model.config.norm_topk_prob:
        for module in model.modules():
            if type(module).__name__ == "DeepseekV2TopkRouter":
                module.register_forward_hook(normalize_experts)
    is_gemma = architecture.startswith("Gemma")
    # The norms of Gemma 1 to 3 and of Qwen3-Next add 1 to their weights.
    adds_one = architecture in ("GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM")
    has_linear_attention = architecture.startswith(("Qwen3Next", "Qwen3_5"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = "norm" in name or ".ln_" in name
            is_token_table = parameter.ndim == 2 and any(
                part in name for part in ("embed_tokens", "embed_in", "embeddings", "word_embeddings", "wte", "lm_head"))
            is_zero_centered = adds_one or (has_linear_attention and "linear_attn" not in name)
            values = torch.randn_like(parameter)
            if is_token_table:
                # Gemma multiplies the embedding by sqrt(hidden_size).
                values *= (0.15 if is_gemma else 0.4) * torch.exp(0.8 * torch.randn(parameter.shape[0], 1))
            elif is_norm or name.endswith("scale"):
                values = values * 0.3 + (0.0 if is_zero_centered or name.endswith(".bias") else 1.0)
            elif not name.endswith("sinks"):
                values *= 0.17
            parameter.copy_(values.to(torch.bfloat16).to(torch.float32))
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.copy_((0.5 + torch.rand_like(buffer)).to(torch.bfloat16).to(torch.float32))
        for name, tensor in model.state_dict().items():
            if name.endswith(("e_score_correction_bias", "expert_bias")):
                tensor.copy_((0.1 * torch.randn(tensor.shape)).to(torch.bfloat16))
    return model
