# Packages: gguf, sentence-transformers, sentencepiece, tokenizers, torch, transformers (requirements.txt).
"""Makes tests/data/pooling/gguf_*: tiny random encoders, converted by llama.cpp's own converter, each with the results of
sentence-transformers, or for qwen3_reranker of transformers, for the checkpoint that was converted.

    python tests/golden/pooling_gguf_golden.py --llama-cpp DIRECTORY [--output DIRECTORY] [--seed N] [CASE...]

DIRECTORY contains convert_hf_to_gguf.py, as in the source package of llama-cpp-python 0.3.36 (vendor/llama.cpp).
"""
import argparse
import json
import pathlib
import runpy
import shutil
import sys
import tempfile

import sentencepiece
import torch
import transformers as tf
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import pooling_golden as plain

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "pooling"
SIZE = plain.SIZES["vocab_size"]


def word_piece(cased=False):
    tokenizer = plain.make_tokenizer(False)
    if cased:
        tokenizer._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    return tokenizer


def byte_level(roberta):
    """A byte-level BPE with RoBERTa's or BERT's special tokens."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    cls, pad, sep, unk, mask = names
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=names, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(plain.TEXTS, trainer)
    ids = [(cls, 0), (sep, 2)]
    if roberta:
        tokenizer.post_processor = processors.RobertaProcessing((sep, 2), (cls, 0), add_prefix_space=False)
    else:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1", special_tokens=ids)
    extra = dict(bos_token=cls, eos_token=sep) if roberta else {}
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unk, pad_token=pad, cls_token=cls,
                                      sep_token=sep, mask_token=mask, model_max_length=48, **extra,
                                      model_input_names=["input_ids", "attention_mask"])


def unigram(directory):
    """XLM-R's tokenizer with a vocabulary trained by SentencePiece, and the SentencePiece model for the converter."""
    model = directory / "sentencepiece.bpe.model"
    text = [t.lower() for t in plain.TEXTS if t] * 20
    with open(model, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text), model_writer=file, vocab_size=60,
                                                 model_type="unigram", normalization_rule_name="identity",
                                                 hard_vocab_limit=False, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocab = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocab += [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(3, pieces.get_piece_size())]
    vocab.append(("<mask>", 0.0))
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id=3))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace(" {2,}", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>",
                                      cls_token="<s>", sep_token="</s>", bos_token="<s>", eos_token="</s>",
                                      mask_token="<mask>", model_max_length=48,
                                      model_input_names=["input_ids", "attention_mask"])


def sizes(tokenizer):
    return {**plain.SIZES, "vocab_size": len(tokenizer)}


def bert(directory, cased=False):
    return plain.bert()[0], word_piece(cased)


def roberta(directory, cls=tf.RobertaModel, **extra):
    tokenizer = byte_level(True)
    config = tf.RobertaConfig(**sizes(tokenizer), max_position_embeddings=50, type_vocab_size=1, layer_norm_eps=1e-5,
                              **extra)
    return cls(config), tokenizer


def xlmr(directory, cls=tf.XLMRobertaModel, **extra):
    tokenizer = unigram(directory)
    config = tf.XLMRobertaConfig(**sizes(tokenizer), max_position_embeddings=50, type_vocab_size=1,
                                 layer_norm_eps=1e-5, **extra)
    return cls(config), tokenizer


def modernbert(directory, cls=tf.ModernBertModel, **extra):
    tokenizer = byte_level(False)
    config = tf.ModernBertConfig(**sizes(tokenizer), max_position_embeddings=48, local_attention=8, pad_token_id=1,
                                 bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2, **extra)
    return cls(config), tokenizer


def nomic(directory):
    return plain.nomic()


def eurobert(directory):
    tokenizer = byte_level(True)
    config = tf.EuroBertConfig(**sizes(tokenizer), num_key_value_heads=2, max_position_embeddings=48, pad_token_id=1,
                               bos_token_id=0, eos_token_id=2, mask_token_id=4)
    return tf.EuroBertModel(config), tokenizer


def gemma(directory):
    model, tokenizer = plain.gemma()[0], byte_level(True)
    model.config.vocab_size = len(tokenizer)
    model.config.num_hidden_layers = 6
    model.config.layer_types = 5 * ["sliding_attention"] + ["full_attention"]  # the converter assumes this pattern
    return type(model)(model.config), tokenizer


# name: (model and tokenizer, the pre-tokenizer that the converter would find, pooling mode, Dense modules)
VECTOR_CASES = {
    "bert_mean": (bert, "bert-bge", "mean", []),
    "bert_cased_cls": (lambda directory: bert(directory, cased=True), "bert-bge", "cls", []),
    "roberta_mean": (roberta, "roberta-bpe", "mean", []),
    "xlmr_cls": (xlmr, "default", "cls", []),
    "modernbert_cls": (modernbert, "modern-bert", "cls", []),
    "nomic_mean": (nomic, "bert-bge", "mean", []),
    "eurobert_mean": (eurobert, "gpt-2", "mean", []),
    "gemma_dense": (gemma, "gpt-2", "mean", [40, 20]),
}
SCORE_CASES = {
    "xlmr_reranker": (lambda directory: xlmr(directory, tf.XLMRobertaForSequenceClassification, num_labels=1), "default"),
    "modernbert_reranker": (lambda directory: modernbert(directory, tf.ModernBertForSequenceClassification, num_labels=1,
                                                         classifier_pooling="mean"), "modern-bert"),
}


# Qwen3-Reranker's prompt, from its model card.
JUDGE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, "
    "retrieve relevant passages that answer the query\n<Query>: {}\n<Document>: {}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n")


def save_judge_case(path, seed, tied):
    tokenizer = byte_level(False)
    names = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "yes", "no", "|"]
    tokenizer.add_special_tokens({"additional_special_tokens": names[:4]})
    tokenizer.add_tokens(names[4:])
    model = tf.Qwen3ForCausalLM(tf.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=12, intermediate_size=44, max_position_embeddings=1024, tie_word_embeddings=tied))
    plain.randomize(model, seed).save_pretrained(path)
    tokenizer.save_pretrained(path)
    (path / "README.md").write_text("# Qwen3-Reranker\n")  # by which the converter knows the model
    yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
    scores = []
    for query, document in plain.PAIRS:
        ids = tokenizer(JUDGE.format(query, document), add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            logits = model.eval()(ids).logits[0, -1].double()
        scores.append(float(torch.softmax(logits[[yes, no]], 0)[0]))
    return "gpt-2", [], {"pairs": plain.PAIRS, "scores": scores}


def for_converter(path):
    """Adds what config.json of the published models has and transformers does not write."""
    file = path / "config.json"
    config = json.loads(file.read_text())
    if config["model_type"] == "nomic_bert" and "num_experts" not in config:
        config.update(n_positions=8192, max_trained_positions=2048, activation_function="swiglu", causal=False,
                      qkv_proj_bias=False, mlp_fc1_bias=False, mlp_fc2_bias=False, prenorm=False,
                      rotary_emb_fraction=1.0, rotary_emb_interleaved=False, rotary_emb_scale_base=None,
                      n_embd=config["hidden_size"], n_layer=config["num_hidden_layers"],
                      n_head=config["num_attention_heads"], n_inner=config["intermediate_size"])
    if "num_experts" in config:
        config.update(hidden_size=config["n_embd"], num_hidden_layers=config["n_layer"], layer_norm_eps=1e-5,
                      num_attention_heads=config["n_head"], intermediate_size=config["n_inner"],
                      max_position_embeddings=50, rope_parameters=dict(rope_type="default", rope_theta=10000.0))
    if config["model_type"] == "modernbert":
        config["layer_norm_eps"] = config["norm_eps"]
    if config["model_type"] == "eurobert":
        config["classifier_pooling"] = "mean"  # the converter rejects the default, which only classifiers use
    file.write_text(json.dumps(config))


def convert(llama_cpp, path, pre, dense, out):
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]
    import conversion.base
    # The converter knows a pre-tokenizer by a hash of its results, which a small vocabulary changes.
    conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    # For this architecture, it writes <mask> at its index in the published vocabulary.
    import conversion.bert
    set_vocab = conversion.bert.BertModel._xlmroberta_set_vocab

    def set_small_vocab(model):
        arch, model.model_arch = model.model_arch, conversion.base.gguf.MODEL_ARCH.BERT
        set_vocab(model)
        model.model_arch = arch

    conversion.bert.NomicBertModel._xlmroberta_set_vocab = set_small_vocab
    sys.argv = ["convert_hf_to_gguf.py", str(path), "--outtype", "f32", "--outfile", str(out)]
    if dense:
        sys.argv.append("--sentence-transformers-dense-modules")
    runpy.run_path(str(llama_cpp / "convert_hf_to_gguf.py"), run_name="__main__")


def save_vector_case(name, path, seed):
    make, pre, pooling, dense = VECTOR_CASES[name]
    torch.manual_seed(seed)
    model, tokenizer = make(path)
    plain.randomize(model, seed).save_pretrained(path / "plain")
    tokenizer.save_pretrained(path / "plain")
    modules = [st.Transformer(str(path / "plain")), st.Pooling(model.config.hidden_size, pooling_mode=pooling)]
    size = model.config.hidden_size
    for out in dense:
        modules.append(st.Dense(size, out, bias=False, activation_function=torch.nn.Identity()))
        size = out
    modules.append(st.Normalize())
    SentenceTransformer(modules=modules, device="cpu").save(str(path), create_model_card=False)
    shutil.rmtree(path / "plain")
    encoder = SentenceTransformer(str(path), device="cpu")
    vectors = [[float(x) for x in encoder.encode(text)] for text in plain.TEXTS]
    return pre, dense, {"texts": plain.TEXTS, "prompts": {"": vectors}}


def set_tokenizer_class(path, name):
    file = path / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "tokenizer_class": name}))


def save_jina_case(path, seed):
    expected = plain.save_jina_case(path, seed)
    set_tokenizer_class(path, "BertTokenizer")
    return "bert-bge", [], expected


def save_jina_code_case(path, seed):
    tokenizer = byte_level(True)
    tokenizer.model_max_length = 64
    expected = plain.save_jina_case(path, seed, for_code=True, tokenizer=tokenizer, vocab_size=len(tokenizer),
                                    num_hidden_layers=2)
    set_tokenizer_class(path, "RobertaTokenizer")
    return "jina-v2-code", [], expected


def save_nomic_moe_case(path, seed):
    """The converter leaves out the bias of the experts, so the model has none."""
    tokenizer = unigram(path)
    expected = plain.save_nomic_moe_case(path, seed, tokenizer, has_output_bias=False, interval=2, num_hidden_layers=4,
                                         vocab_size=len(tokenizer))
    return "default", [], expected


REMOTE_CASES = {"jina_mean": save_jina_case, "jina_code_mean": save_jina_code_case,
                "nomic_moe_mean": save_nomic_moe_case}


def save_score_case(name, path, seed):
    make, pre = SCORE_CASES[name]
    torch.manual_seed(seed)
    model, tokenizer = make(path)
    model.config.id2label = {0: "score"}  # the converter takes LABEL_0 for no classifier
    plain.randomize(model, seed).save_pretrained(path)
    tokenizer.save_pretrained(path)
    encoder = CrossEncoder(str(path), device="cpu", max_length=48)
    return pre, [], {"pairs": plain.PAIRS, "scores": [float(encoder.predict([pair])[0]) for pair in plain.PAIRS]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-cpp", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, default=OUT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in [*VECTOR_CASES, *SCORE_CASES, *REMOTE_CASES, "qwen3_reranker", "qwen3_reranker_tied"]:
        if arguments.cases and name not in arguments.cases:
            continue
        out = arguments.output / ("gguf_" + name)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory)
            if name in REMOTE_CASES:
                pre, dense, expected = REMOTE_CASES[name](path, arguments.seed)
            elif name.startswith("qwen3_reranker"):
                pre, dense, expected = save_judge_case(path, arguments.seed, name.endswith("tied"))
            else:
                save = save_vector_case if name in VECTOR_CASES else save_score_case
                pre, dense, expected = save(name, path, arguments.seed)
            for_converter(path)
            convert(arguments.llama_cpp, path, pre, dense, out / "model.gguf")
        (out / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
