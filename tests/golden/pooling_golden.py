# Packages: safetensors, sentence-transformers, tokenizers, torch, transformers (requirements.txt).
"""Makes tests/data/pooling: tiny random models that turn texts into vectors or scores, saved by sentence-transformers,
each with the results of sentence-transformers in float32.

    python tests/golden/pooling_golden.py [--output DIRECTORY] [--seed N] [CASE...]
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers as tf
from safetensors.torch import save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "pooling"
WORDS = ["the", "cat", "dog", "sat", "on", "a", "mat", "tea", "how", "to", "brew", "is", "what", "panda", "bear", "of",
         "china", "bread", "kind", "query", "document", "search", "result", "title", "none", "task", ":", ".", ",", "?"]
TEXTS = ["the cat sat on the mat.", "how to brew tea?", "", "a", "What is a panda?", "a bear of china, a kind of bear",
         "bread", "the the the the the the the the the the the the the the the the the the the the the the the the the",
         "unknown wörds and 字 too", "a kind of bread. " * 12]
PAIRS = [("what is a panda?", "a bear of china"), ("what is a panda?", "a kind of bread"), ("tea", ""),
         ("how to brew tea?", "a kind of bread. " * 12), ("a bear. " * 20, "the mat. " * 20), ("a", "b")]
SIZES = dict(vocab_size=80, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48)


def make_tokenizer(roberta, eos_only=False, max_length=48):
    """A WordPiece tokenizer. BERT's pairs have token types; RoBERTa's have two separators."""
    cls, sep, pad, unk = ("<s>", "</s>", "<pad>", "<unk>") if roberta else ("[CLS]", "[SEP]", "[PAD]", "[UNK]")
    specials = [cls, pad, sep, unk, "[MASK]"] if roberta else [pad, unk, cls, sep, "[MASK]"]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocab = specials + WORDS + [w for w in letters if w not in WORDS] + ["##s", "##e", "##d"]
    vocab = list(dict.fromkeys(vocab))
    assert len(vocab) <= SIZES["vocab_size"], len(vocab)
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocab)}, unk_token=unk))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ids = {w: vocab.index(w) for w in (cls, sep)}
    if eos_only:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {sep}", pair=f"$A {sep} $B:1 {sep}:1", special_tokens=[(sep, ids[sep])])
    else:
        pair = f"{cls} $A {sep} {sep} $B {sep}" if roberta else f"{cls} $A {sep} $B:1 {sep}:1"
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=pair, special_tokens=list(ids.items()))
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unk, pad_token=pad, cls_token=cls,
                                      sep_token=sep, mask_token="[MASK]", model_max_length=max_length,
                                      model_input_names=["input_ids", "token_type_ids", "attention_mask"]
                                      if not roberta and not eos_only else ["input_ids", "attention_mask"])


def special_ids(**others):
    return dict(pad_token_id=0, bos_token_id=2, eos_token_id=3, **others)


def bert(cls=tf.BertModel, **extra):
    return cls(tf.BertConfig(**SIZES, max_position_embeddings=48, **extra)), make_tokenizer(False)


def xlmr(cls=tf.XLMRobertaModel, **extra):
    config = tf.XLMRobertaConfig(**SIZES, max_position_embeddings=50, type_vocab_size=1, layer_norm_eps=1e-5, **extra)
    return cls(config), make_tokenizer(True)


def mpnet(cls=tf.MPNetModel, **extra):
    config = tf.MPNetConfig(**SIZES, max_position_embeddings=202, **extra)
    return cls(config), make_tokenizer(True, max_length=200)


def electra(cls=tf.ElectraModel, **extra):
    return cls(tf.ElectraConfig(**SIZES, embedding_size=32, max_position_embeddings=48, **extra)), make_tokenizer(False)


def modernbert(cls=tf.ModernBertModel, **extra):
    config = tf.ModernBertConfig(**SIZES, max_position_embeddings=48, local_attention=8,
                                 **special_ids(cls_token_id=2, sep_token_id=3), **extra)
    return cls(config), make_tokenizer(False)


def nomic():
    return tf.NomicBertModel(tf.NomicBertConfig(**SIZES, max_position_embeddings=48)), make_tokenizer(False)


def gte():
    return tf.GteModel(tf.GteConfig(**SIZES, max_position_embeddings=48)), make_tokenizer(True)


def eurobert():
    config = tf.EuroBertConfig(**SIZES, num_key_value_heads=2, max_position_embeddings=48,
                               **special_ids(mask_token_id=4))
    return tf.EuroBertModel(config), make_tokenizer(False)


def distilbert():
    config = tf.DistilBertConfig(vocab_size=80, dim=32, n_layers=3, n_heads=4, hidden_dim=48,
                                 max_position_embeddings=48)
    return tf.DistilBertModel(config), make_tokenizer(False)


def qwen3(cls=tf.Qwen3Model, **extra):
    config = tf.Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=8, max_position_embeddings=48, **special_ids(),
                            **extra)
    return cls(config), make_tokenizer(False, eos_only=True)


def gemma():
    config = tf.Gemma3TextConfig(**SIZES, num_key_value_heads=2, head_dim=8, sliding_window=8,
                                 query_pre_attn_scalar=8, use_bidirectional_attention=True,
                                 layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                                 max_position_embeddings=48, **special_ids())
    return tf.Gemma3TextModel(config), make_tokenizer(False)


# name: (model and tokenizer, pooling modes, further modules, the name of a Dense activation, options)
VECTOR_CASES = {
    "bert_mean": (bert, ["mean"], ["Normalize"], dict(max_seq_length=24)),
    "bert_cls_prompt": (bert, ["cls"], ["Normalize"], dict(prompts={"query": "search query: ", "document": ""})),
    "bert_three_poolings": (bert, ["cls", "mean", "max"], [], {}),
    "bert_weightedmean": (bert, ["weightedmean"], ["Normalize"],
                          dict(prompts={"query": "query: "}, include_prompt=False)),
    "bert_mean_without_prompt": (bert, ["mean"], [], dict(prompts={"query": "query: "}, include_prompt=False)),
    "xlmr_cls": (xlmr, ["cls"], ["Normalize"], {}),
    "electra_max": (electra, ["max"], [], {}),
    "mpnet_mean": (mpnet, ["mean"], ["Normalize"], {}),
    "modernbert_mean": (modernbert, ["mean"], [], {}),
    "nomic_mean": (nomic, ["mean"], ["Normalize"], dict(truncate_dim=16)),
    "gte_cls": (gte, ["cls"], ["Normalize"], {}),
    "eurobert_sqrt": (eurobert, ["mean_sqrt_len_tokens"], [], {}),
    "distilbert_dense": (distilbert, ["mean"], [("tanh", 24)], {}),
    "qwen3_last": (qwen3, ["lasttoken"], ["Normalize"], dict(prompts={"query": "task: search\nquery: "})),
    "gemma_dense": (gemma, ["mean"], [("identity", 40), ("identity", 20), "Normalize"],
                    dict(prompts={"query": "task: search result, query: ", "document": "title: none, text: "},
                         default_prompt_name="document")),
}
SCORE_CASES = {
    "bert_classifier": lambda: bert(tf.BertForSequenceClassification, num_labels=1),
    "xlmr_reranker": lambda: xlmr(tf.XLMRobertaForSequenceClassification, num_labels=1),
    "electra_reranker": lambda: electra(tf.ElectraForSequenceClassification, num_labels=1),
    "mpnet_reranker": lambda: mpnet(tf.MPNetForSequenceClassification, num_labels=1),
    "modernbert_reranker": lambda: modernbert(tf.ModernBertForSequenceClassification, num_labels=1,
                                              classifier_pooling="mean"),
    "qwen3_classifier": lambda: qwen3(tf.Qwen3ForSequenceClassification, num_labels=1),
}
RAW_SCORES = {"bert_classifier"}  # CrossEncoder applies no activation, as with ms-marco-MiniLM


def randomize(model, seed):
    """Larger weights than transformers' initialization, so that texts differ."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(parameter + noise * (0.1 if parameter.dim() == 1 else 0.15))
    return model.eval()


def save_vector_case(name, path, seed):
    make, pooling, others, options = VECTOR_CASES[name]
    torch.manual_seed(seed)
    model, tokenizer = make()
    plain = path / "plain"
    randomize(model, seed).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    transformer = st.Transformer(str(plain), max_seq_length=options.get("max_seq_length"))
    modules = [transformer, st.Pooling(model.config.hidden_size, pooling_mode=tuple(pooling)
                                       if len(pooling) > 1 else pooling[0],
                                       include_prompt=options.get("include_prompt", True))]
    size = model.config.hidden_size * len(pooling)
    for other in others:
        if other == "Normalize":
            modules.append(st.Normalize())
            continue
        activation, out = other
        modules.append(st.Dense(size, out, bias=activation == "tanh",
                                activation_function=torch.nn.Tanh() if activation == "tanh" else torch.nn.Identity()))
        size = out
    encoder = SentenceTransformer(modules=modules, prompts=options.get("prompts"), device="cpu",
                                  default_prompt_name=options.get("default_prompt_name"),
                                  truncate_dim=options.get("truncate_dim"))
    encoder.save(str(path), create_model_card=False)
    shutil.rmtree(plain)
    encoder = SentenceTransformer(str(path), device="cpu", truncate_dim=options.get("truncate_dim"))
    # Two texts in which distances are longer than the last that MPNet distinguishes.
    texts = [*TEXTS, "the cat sat on a mat. " * 27, "how to brew tea? the panda is a bear. " * 18] if make is mpnet else TEXTS
    expected = {"texts": texts, "prompts": {}}
    for prompt in [None, *options.get("prompts", {})]:
        vectors = [encoder.encode(text, prompt_name=prompt, normalize_embeddings=bool(options.get("truncate_dim")))
                   for text in texts]
        expected["prompts"]["" if prompt is None else prompt] = [[float(x) for x in v] for v in vectors]
    if name == "bert_cls_prompt":
        use_old_files(path)
    return expected


class GatedMlp(torch.nn.Module):
    """JinaBERT's MLP: GELU of the first half times the second. It replaces BertIntermediate. The model for code has the
    halves in the other order."""

    def __init__(self, hidden_size, size, for_code):
        super().__init__()
        self.gated_layers = torch.nn.Linear(hidden_size, 2 * size, bias=False)
        self.for_code = for_code

    def forward(self, x):
        gate, up = self.gated_layers(x).chunk(2, -1)
        return gate * torch.nn.functional.gelu(up) if self.for_code else torch.nn.functional.gelu(gate) * up


class AttentionAddedTwice(torch.nn.Module):
    """In jina-embeddings-v2-base-code, the input of BertAttention is added to its output again, and the sum is normalized.
    """

    def __init__(self, attention, hidden_size):
        super().__init__()
        self.attention = attention
        self.layer_norm_1 = torch.nn.LayerNorm(hidden_size, eps=1e-12)

    def forward(self, x, *arguments, **options):
        output, weights = self.attention(x, *arguments, **options)
        return self.layer_norm_1(x + output), weights


def add_code_norms(layer, hidden_size):
    attention = layer.attention.self
    for name in ["query", "key"]:
        norm = torch.nn.LayerNorm(hidden_size, eps=1e-12)
        setattr(attention, name, torch.nn.Sequential(getattr(attention, name), norm))
    layer.attention = AttentionAddedTwice(layer.attention, hidden_size)


JINA_NAMES = [("intermediate.gated", "mlp.gated"), ("attention.output", "ATTENTION"), ("output.dense", "mlp.wo"),
              ("output.LayerNorm", "mlp.layernorm"), ("ATTENTION", "attention.output")]
JINA_CODE_NAMES = [("attention.layer_norm_1", "layer_norm_1"), ("attention.attention", "attention"),
                   ("query.0", "query"), ("query.1", "layer_norm_q"), ("key.0", "key"), ("key.1", "layer_norm_k"),
                   *JINA_NAMES, ("gated_layers", "up_gated_layer"), ("mlp.wo", "mlp.down_layer"),
                   ("mlp.layernorm", "layer_norm_2")]


def rename(name, pairs):
    for old, new in pairs:
        name = name.replace(old, new)
    return name


def alibi_slopes(num_heads):
    """Those of arXiv 2108.12409, with the special case for other numbers than powers of 2."""
    power = 1 << (num_heads.bit_length() - 1)
    slopes = [2.0**(-8.0 * (i + 1) / power) for i in range(power)]
    return slopes + [2.0**(-4.0 * (2 * i + 1) / power) for i in range(num_heads - power)]


def save_jina_case(path, seed, for_code=False, tokenizer=None, **changes):
    """JinaBERT (arXiv 2310.19923), which transformers does not have: its BertModel without positions, with another MLP
    and ALiBi as an additive mask. Six heads, because the slopes of ALiBi have a special case there."""
    torch.manual_seed(seed)
    tokenizer = tokenizer or make_tokenizer(False, max_length=64)
    sizes = {**SIZES, "hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 56, **changes}
    model = tf.BertModel(tf.BertConfig(**sizes, max_position_embeddings=64), add_pooling_layer=False)
    for layer in model.encoder.layer:
        layer.intermediate = GatedMlp(sizes["hidden_size"], sizes["intermediate_size"], for_code)
        if for_code:
            add_code_norms(layer, sizes["hidden_size"])
    randomize(model, seed)
    torch.nn.init.zeros_(model.embeddings.position_embeddings.weight)
    slopes = torch.tensor(alibi_slopes(sizes["num_attention_heads"]))
    vectors = []
    for text in TEXTS:
        tokens = tokenizer(text, truncation=True, return_tensors="pt")
        positions = torch.arange(tokens["input_ids"].shape[1])
        distances = (positions[:, None] - positions[None, :]).abs()
        tokens["attention_mask"] = -slopes[None, :, None, None] * distances
        with torch.no_grad():
            hidden = model(**tokens).last_hidden_state[0]
        vectors.append([float(x) for x in torch.nn.functional.normalize(hidden.mean(0), dim=0)])
    tensors = {rename(name, JINA_CODE_NAMES if for_code else JINA_NAMES): tensor.contiguous()
               for name, tensor in model.state_dict().items() if "position_embeddings" not in name}
    config = dict(sizes, architectures=["JinaBertModel" if for_code else "JinaBertForMaskedLM"], model_type="bert",
                  position_embedding_type="alibi", feed_forward_type="geglu", max_position_embeddings=64,
                  layer_norm_eps=1e-12, type_vocab_size=2, hidden_act="gelu", dtype="float32", pad_token_id=0)
    if for_code:
        config["auto_map"] = {"AutoModel": "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"}
    save_files(path, tensors, config, tokenizer)
    return {"texts": TEXTS, "prompts": {"": vectors}}


class Experts(torch.nn.Module):
    """The MLP of every second layer of nomic-embed-text-v2-moe (arXiv 2502.07972). It computes all experts and adds
    those with the largest probabilities."""

    def __init__(self, hidden_size, size, num_experts, top_k):
        super().__init__()
        self.router = torch.nn.Linear(hidden_size, num_experts, bias=False)
        self.w1 = torch.nn.Parameter(torch.zeros(num_experts, size, hidden_size))
        self.w2 = torch.nn.Parameter(torch.zeros(num_experts, size, hidden_size))
        self.bias = torch.nn.Parameter(torch.zeros(hidden_size))
        self.top_k = top_k

    def forward(self, x):
        probabilities = torch.softmax(self.router(x), -1)
        limit = probabilities.topk(self.top_k, -1).values[..., -1:]
        weights = torch.where(probabilities >= limit, probabilities, 0.0)
        inner = torch.nn.functional.gelu(torch.einsum("esh,...h->...es", self.w1, x))
        return torch.einsum("...e,esh,...es->...h", weights, self.w2, inner) + self.bias


def save_nomic_moe_case(path, seed, tokenizer=None, has_output_bias=True, num_experts=5, top_k=2, interval=3, **changes):
    """nomic-embed-text-v2-moe, whose layers transformers does not have: its NomicBertModel with biases and other MLPs.
    Five layers, of which the second and the last have experts."""
    torch.manual_seed(seed)
    tokenizer = tokenizer or make_tokenizer(True)
    sizes = {**SIZES, "num_hidden_layers": 5, "intermediate_size": 40, **changes}
    hidden_size, size = sizes["hidden_size"], sizes["intermediate_size"]
    model = tf.NomicBertModel(tf.NomicBertConfig(
        **sizes, max_position_embeddings=48, type_vocab_size=1, layer_norm_eps=1e-5,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0)))
    for i, layer in enumerate(model.layers):
        for name in ["q_proj", "k_proj", "v_proj", "o_proj"]:
            setattr(layer.self_attn, name, torch.nn.Linear(hidden_size, hidden_size))
        layer.mlp = Experts(hidden_size, size, num_experts, top_k) if i % interval == 1 else torch.nn.Sequential(
            torch.nn.Linear(hidden_size, size), torch.nn.GELU(), torch.nn.Linear(size, hidden_size))
    randomize(model, seed)
    if not has_output_bias:
        for name, parameter in model.named_parameters():
            if name.endswith("mlp.bias"):
                torch.nn.init.zeros_(parameter)
    vectors = []
    for text in TEXTS:
        with torch.no_grad():
            tokens = tokenizer(text, truncation=True, return_tensors="pt")
            hidden = model(**tokens).last_hidden_state[0]
        vectors.append([float(x) for x in torch.nn.functional.normalize(hidden.mean(0), dim=0)])
    tensors = {}
    for name, tensor in model.state_dict().items():
        name = rename(name, [("embeddings.LayerNorm", "emb_ln"), ("layers.", "encoder.layers."),
                             ("post_attention_layernorm", "norm1"), ("post_mlp_layernorm", "norm2"),
                             ("self_attn.o_proj", "attn.out_proj"), ("self_attn", "attn"), ("mlp.0.", "mlp.fc1."),
                             ("mlp.2.", "mlp.fc2."), ("mlp.router", "mlp.router.layer"), ("mlp.bias", "mlp.experts.bias"),
                             ("mlp.w", "mlp.experts.mlp.w")])
        tensors[name] = tensor.reshape(-1, hidden_size) if tensor.dim() == 3 else tensor
    for name in [name for name in tensors if "attn.q_proj" in name]:
        parts = [tensors.pop(name.replace("q_proj", part)) for part in ["q_proj", "k_proj", "v_proj"]]
        tensors[name.replace("q_proj", "Wqkv")] = torch.cat(parts)
    config = dict(architectures=["NomicBertModel"], model_type="nomic_bert", activation_function="gelu", causal=False,
                  prenorm=False, parallel_block=False, use_rms_norm=None, n_embd=hidden_size, n_inner=size,
                  n_layer=sizes["num_hidden_layers"], n_head=sizes["num_attention_heads"], n_positions=2048,
                  max_trained_positions=2048, vocab_size=sizes["vocab_size"], type_vocab_size=1, pad_token_id=1,
                  layer_norm_epsilon=1e-5, qkv_proj_bias=True, mlp_fc1_bias=True, mlp_fc2_bias=True, dtype="float32",
                  rotary_emb_base=10000, rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
                  rotary_emb_scale_base=None, rotary_scaling_factor=None, num_experts=num_experts, moe_top_k=top_k,
                  moe_every_n_layers=interval, moe_impl="megablocks", moe_normalize_expert_weights=False,
                  num_shared_experts=0, expert_choice_router=False, ffn_div=1)
    save_files(path, tensors, config, tokenizer)
    return {"texts": TEXTS, "prompts": {"": vectors}}


def save_files(path, tensors, config, tokenizer):
    """Writes what SentenceTransformer.save does, for models whose code it does not have."""
    tokenizer.save_pretrained(path)
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    (path / "modules.json").write_text(json.dumps(
        [dict(idx=i, name=str(i), path=directory, type="sentence_transformers.models." + kind)
         for i, (kind, directory) in enumerate(modules)], indent=2) + "\n")
    (path / "1_Pooling").mkdir()
    size = config.get("hidden_size", config.get("n_embd"))
    (path / "1_Pooling" / "config.json").write_text(json.dumps(
        dict(word_embedding_dimension=size, pooling_mode_mean_tokens=True), indent=2) + "\n")


# Models whose code is not in transformers.
REMOTE_CASES = {
    "jina_mean": save_jina_case,
    "jina_code_mean": lambda path, seed: save_jina_case(path, seed, for_code=True),
    "nomic_moe_mean": save_nomic_moe_case,
}


def use_old_files(path):
    """Writes the files as sentence-transformers 2 did."""
    modules = json.loads((path / "modules.json").read_text())
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rsplit(".", 1)[1]
    (path / "modules.json").write_text(json.dumps(modules, indent=2))
    old = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False,
           "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(old, indent=2))


def save_score_case(name, path, seed):
    torch.manual_seed(seed)
    model, tokenizer = SCORE_CASES[name]()
    if name in RAW_SCORES:
        model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    randomize(model, seed).save_pretrained(path)
    tokenizer.save_pretrained(path)
    encoder = CrossEncoder(str(path), device="cpu", max_length=tokenizer.model_max_length)
    scores = [float(encoder.predict([pair])[0]) for pair in PAIRS]
    return {"pairs": PAIRS, "scores": scores}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in [*VECTOR_CASES, *SCORE_CASES, *REMOTE_CASES]:
        if arguments.cases and name not in arguments.cases:
            continue
        path = arguments.output / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        if name in REMOTE_CASES:
            expected = REMOTE_CASES[name](path, arguments.seed)
        else:
            save = save_vector_case if name in VECTOR_CASES else save_score_case
            expected = save(name, path, arguments.seed)
        for junk in [*path.glob("README.md"), *path.glob(".gitattributes"), *path.glob("generation_config.json")]:
            junk.unlink()
        (path / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
