# Packages: torch, transformers (requirements.txt).
"""Contains the classes BailingMoeForCausalLM (Ling-lite, arXiv 2503.05139) and BailingMoeV2ForCausalLM (Ling 2.0,
arXiv 2510.22115), which transformers does not have. They compute what the code that comes with the published
checkpoints computes, and have its tensor names. models_golden.py and gguf_golden.py use them."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


class BailingMoeConfig(PreTrainedConfig):
    model_type = "bailing_moe"

    def __init__(self, vocab_size=30592, hidden_size=1024, intermediate_size=None, num_hidden_layers=24,
                 num_attention_heads=16, num_key_value_heads=16, head_dim=None, rms_norm_eps=1e-5,
                 rope_parameters=None, max_position_embeddings=16384, use_qkv_bias=False, use_bias=False, norm_head=False,
                 num_experts=16, num_shared_experts=1, num_experts_per_tok=2, norm_topk_prob=True,
                 moe_intermediate_size=None, first_k_dense_replace=0, **kwargs):
        self.set(locals())
        super().__init__(**kwargs)

    def set(self, arguments):
        for name, value in arguments.items():
            if name not in ("self", "kwargs", "__class__"):
                setattr(self, name, value)
        self.hidden_act = "silu"
        # Published files have rope_theta outside the object.
        theta = arguments["kwargs"].pop("rope_theta", 1e4)
        self.rope_parameters = {"rope_type": "default", "rope_theta": theta, **(self.rope_parameters or {})}
        self.head_dim = self.head_dim or self.hidden_size // self.num_attention_heads


class BailingMoeV2Config(BailingMoeConfig):
    # The published config.json files have the model_type of the first version.
    def __init__(self, vocab_size=157184, hidden_size=2048, intermediate_size=5120, num_hidden_layers=20,
                 num_attention_heads=16, num_key_value_heads=4, head_dim=128, rms_norm_eps=1e-6,
                 rope_parameters=None, max_position_embeddings=32768, use_qkv_bias=False, use_bias=False, use_qk_norm=True,
                 partial_rotary_factor=0.5, num_experts=256, num_shared_experts=1, num_experts_per_tok=8, n_group=8,
                 topk_group=4, moe_intermediate_size=512, first_k_dense_replace=1, routed_scaling_factor=1.0,
                 norm_topk_prob=True, score_function="sigmoid", moe_router_enable_expert_bias=True, **kwargs):
        self.set(locals())
        PreTrainedConfig.__init__(self, **kwargs)


class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype)


class Mlp(nn.Module):
    def __init__(self, config, width):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.down_proj = nn.Linear(width, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Gate(nn.Module):
    """Returns the chosen experts and their weights. x: [num_tokens, hidden_size]."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.zeros(config.num_experts, config.hidden_size))
        self.is_v2 = isinstance(config, BailingMoeV2Config)
        if self.is_v2:
            self.register_buffer("expert_bias", torch.zeros(config.num_experts))

    def forward(self, x):
        k = self.config.num_experts_per_tok
        if not self.is_v2:
            weights, chosen = F.linear(x, self.weight).float().softmax(-1).topk(k, dim=-1)
            normalize = self.config.norm_topk_prob and k > 1
            return chosen, weights / weights.sum(-1, keepdim=True) if normalize else weights
        scores = F.linear(x.float(), self.weight.float()).sigmoid()
        biased = (scores + self.expert_bias).unflatten(-1, (self.config.n_group, -1))
        best_groups = biased.topk(2, dim=-1).values.sum(-1).topk(self.config.topk_group, dim=-1).indices
        is_best = torch.zeros(biased.shape[:2], dtype=torch.bool).scatter(1, best_groups, True)
        chosen = biased.masked_fill(~is_best[..., None], -math.inf).flatten(1).topk(k, dim=-1).indices
        weights = scores.gather(1, chosen)
        if k > 1:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return chosen, weights * self.config.routed_scaling_factor


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = Gate(config)
        self.experts = nn.ModuleList(Mlp(config, config.moe_intermediate_size) for _ in range(config.num_experts))
        if config.num_shared_experts:
            self.shared_experts = Mlp(config, config.moe_intermediate_size * config.num_shared_experts)

    def forward(self, x):
        rows = x.flatten(0, 1)
        chosen, weights = self.gate(rows)
        # The products are float32 even if the model is bfloat16, as the weights are.
        outputs = torch.stack([expert(rows) for expert in self.experts], dim=1)
        picked = outputs.gather(1, chosen[..., None].expand(-1, -1, rows.shape[1]))
        out = (picked.to(weights.dtype) * weights[..., None]).sum(1).to(x.dtype).view_as(x)
        return out + self.shared_experts(x) if hasattr(self, "shared_experts") else out


def rotate(x, cos, sin):
    """Rotates the first dimensions of each head; halves form the pairs."""
    dim = cos.shape[-1]
    turned, rest = x[..., :dim], x[..., dim:]
    first, second = turned.chunk(2, dim=-1)
    return torch.cat([turned * cos + torch.cat([-second, first], dim=-1) * sin, rest], dim=-1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        heads, kv_heads, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.query_key_value = nn.Linear(config.hidden_size, (heads + 2 * kv_heads) * dim, bias=config.use_qkv_bias)
        self.dense = nn.Linear(heads * dim, config.hidden_size, bias=config.use_bias)
        self.has_norms = getattr(config, "use_qk_norm", False)
        if self.has_norms:
            self.query_layernorm = Norm(dim, config.rms_norm_eps)
            self.key_layernorm = Norm(dim, config.rms_norm_eps)

    def forward(self, x, cos, sin):
        heads, kv_heads, dim = (self.config.num_attention_heads, self.config.num_key_value_heads, self.config.head_dim)
        qkv = self.query_key_value(x).unflatten(-1, (heads + 2 * kv_heads, dim)).transpose(1, 2)
        q, k, v = qkv.split([heads, kv_heads, kv_heads], dim=1)
        if self.has_norms:
            q, k = self.query_layernorm(q), self.key_layernorm(k)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (part.repeat_interleave(heads // kv_heads, dim=1) for part in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(dim)
        scores = scores.masked_fill(torch.ones(scores.shape[2:], dtype=torch.bool).triu(1), -math.inf)
        attended = scores.float().softmax(-1).to(q.dtype) @ v
        return self.dense(attended.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.attention = Attention(config)
        is_dense = index < config.first_k_dense_replace
        self.mlp = Mlp(config, config.intermediate_size) if is_dense else Experts(config)
        self.input_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = Norm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.num_hidden_layers))
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)

    def forward(self, ids):
        x = self.word_embeddings(ids)
        dim = int(self.config.head_dim * getattr(self.config, "partial_rotary_factor", 1.0))
        rope = self.config.rope_parameters
        frequencies = 1.0 / rope["rope_theta"] ** (torch.arange(0, dim, 2).float() / dim)
        if rope["rope_type"] == "linear":
            frequencies = frequencies / rope["factor"]
        angles = torch.outer(torch.arange(ids.shape[1]).float(), frequencies).repeat(1, 2)
        for layer in self.layers:
            x = layer(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        return self.norm(x)


class BailingMoeForCausalLM(PreTrainedModel):
    config_class = BailingMoeConfig
    base_model_prefix = "model"
    _tied_weights_keys = {"lm_head.weight": "model.word_embeddings.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.model.word_embeddings

    def get_output_embeddings(self):
        return self.lm_head

    def forward(self, input_ids, use_cache=False):
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids)))


class BailingMoeV2ForCausalLM(BailingMoeForCausalLM):
    config_class = BailingMoeV2Config
