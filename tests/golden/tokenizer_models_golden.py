# Packages: sentencepiece, tokenizers (requirements.txt).
"""Makes the files of tests/data/tokenizer for the models other than BPE and for their components, with the
`tokenizers` package. The character maps come from the `sentencepiece` package.

NAME.json              small tokenizers: unigram, unigram_bytes, word_piece and word_level
NAME.jsonl             texts with the reference's ids and decoded texts, one object per line
components_more.jsonl  further components on their own, as in components.jsonl

    python tests/golden/tokenizer_models_golden.py [--output DIRECTORY]
"""

import argparse
import io
import json
import pathlib
import random
import tempfile

import sentencepiece
import tokenizer_golden as base
import tokenizer_proto as proto
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

MORE = (
    "\u00a0\u2003|\u200b|\u200d|\ufeff|\ufb01n|\u3392|\u2460|\uff21\uff42|\u1e9b\u0323|\u0344|\u1100\u1161|\u0e33|A\u030a|"
    "\u212b\u0301|\u00bc|\u2026|\u4e2d\u6587|\ud55c\uad6d\uc5b4|\u30ab\u30fc\u3042|\u0416\u0443\u043a|\u05d0\u05d1|\u0915\u094d\u0937|"
    "\r\n|\x0b|\x0c|\x85|e\u0301|\u0130I|\u00c9T\u00c9|unaffable|don't|[CLS]|[SEP]|[MASK]|\U0001f1e9\U0001f1ea|<0x41>|"
    "<extra_id_0>|\ufdfa|\u1e0b\u0323"
).split("|")


def random_text(rng):
    parts = []
    for _ in range(rng.randrange(1, 9)):
        parts.append(rng.choice(base.SNIPPETS + MORE))
        parts.append(rng.choice(base.SPACES))
    return "".join(parts)


def write_rules(rules, file):
    """Writes (from, to) pairs as a SentencePiece rule file: hexadecimal code points, with a tab between the strings."""
    for left, right in rules:
        file.write(" ".join(f"{ord(c):X}" for c in left) + "\t" + " ".join(f"{ord(c):X}" for c in right) + "\n")
    file.flush()


def charsmap(rule):
    """Returns the compiled character map of a SentencePiece normalization rule. `rule` is the name of a built-in rule
    or a list of (from, to)."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        arguments = {"normalization_rule_name": rule}
        if isinstance(rule, list):
            write_rules(rule, file)
            arguments = {"normalization_rule_tsv": file.name}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(base.TEXT.splitlines()), model_writer=model, vocab_size=70, hard_vocab_limit=False,
            character_coverage=0.98, minloglevel=2, **arguments
        )
    return proto.get(proto.parse(proto.get(proto.parse(model.getvalue()), 3)), 2)


RULES = [
    ("\ufb01", "fi"), ("\uff21", "A"), ("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\n", " "), ("\r", " "), ("\u200b", ""),
    ("A\u030a", "\u00c5"), ("\u00bd", "1/2"), ("\u0e33", "\u0e4d\u0e32"), ("e\u0301", "\u00e9"), ("\u2026", "..."), ("\ufdfa", "long words"),
]


def unigram(byte_fallback):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(base.TEXT.splitlines(), trainer)
    spec = json.loads(tokenizer.to_str())
    vocab = [[token, round(score, 4)] for token, score in spec["model"]["vocab"]]
    # The trainer's result differs from run to run, so use the committed vocabulary if there is one.
    path = base.OUT / "unigram.json"
    if path.exists():
        vocab = json.loads(path.read_text())["model"]["vocab"]
    if byte_fallback:
        vocab = vocab + [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram([tuple(v) for v in vocab], unk_id=2, byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    ) if not byte_fallback else pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    if not byte_fallback:
        tokenizer.normalizer = normalizers.Precompiled(charsmap(RULES))
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]
    ) if byte_fallback else decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken("<extra_id_0>", lstrip=True, rstrip=True, normalized=False)] + base.ADDED[1:])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(base.TEXT.splitlines(), trainer)
    tokenizer.decoder = decoders.WordPiece("##", True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    vocab = tokenizer.get_vocab()
    # The trainer orders tokens of equal count differently in each run, so use the committed order if there is one.
    order = special + sorted(token for token in vocab if token not in special)
    path = base.OUT / "word_piece.json"
    if path.exists():
        order = sorted(json.loads(path.read_text())["model"]["vocab"].items(), key=lambda item: item[1])
        order = [token for token, _ in order]
    result = Tokenizer(models.WordPiece({t: i for i, t in enumerate(order)}, unk_token="[UNK]", max_input_chars_per_word=30))
    for key in ["normalizer", "pre_tokenizer", "decoder", "post_processor"]:
        setattr(result, key, getattr(tokenizer, key))
    result.add_special_tokens(special)
    result.add_tokens(base.ADDED[1:])
    return result


def word_level():
    words = sorted(set(word for word, _ in pre_tokenizers.Whitespace().pre_tokenize_str(base.TEXT)))
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["<unk>"] + words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    tokenizer.add_tokens(base.ADDED)
    return tokenizer


NORMALIZERS = {
    "Bert": normalizers.BertNormalizer(),
    "Bert cased": normalizers.BertNormalizer(lowercase=False),
    "Bert, accents kept": normalizers.BertNormalizer(strip_accents=False),
    "Bert, accents only": normalizers.BertNormalizer(False, False, True, False),
    "Bert, Chinese only": normalizers.BertNormalizer(False, True, False, False),
    "Nmt": normalizers.Nmt(),
    "Precompiled small": normalizers.Precompiled(charsmap(RULES)),
    "T5's chain": normalizers.Sequence(
        [
            normalizers.Nmt(), normalizers.Precompiled(charsmap(RULES)), normalizers.Strip(False, True),
            normalizers.Replace(Regex(" {2,}"), "\u2581"),
        ]
    ),
    "Albert's chain": normalizers.Sequence(
        [
            normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
            normalizers.Lowercase(), normalizers.Precompiled(charsmap(RULES)),
        ]
    ),
}
PRE_TOKENIZERS = {
    "CharDelimiterSplit": pre_tokenizers.CharDelimiterSplit("-"),
    "CharDelimiterSplit wide": pre_tokenizers.CharDelimiterSplit("\u4e2d"),
    "FixedLength": pre_tokenizers.FixedLength(3),
    "UnicodeScripts": pre_tokenizers.UnicodeScripts(),
    "UnicodeScripts, then Whitespace": pre_tokenizers.Sequence(
        [pre_tokenizers.UnicodeScripts(), pre_tokenizers.Whitespace()]
    ),
    "Falcon": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(False),
            pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ]
    ),
    "Bloom": pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
}
DECODERS = {
    "CTC": decoders.CTC("<pad>", "|", True),
    "CTC without cleanup": decoders.CTC("<pad>", "|", False),
    "WordPiece, then Fuse": decoders.Sequence([decoders.WordPiece("##", True), decoders.Fuse()]),
    "ByteFallback, then Metaspace": decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=base.OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    base.NORMALIZERS = NORMALIZERS
    base.pre_tokenizer_list = lambda: PRE_TOKENIZERS
    base.DECODERS = DECODERS
    base.POST_PROCESSORS = {}
    base.DECODER_TOKENS = base.DECODER_TOKENS + ["<pad>", "|", "a", "<pad>a", "|b|", " |."]
    base.DECODER_TOKENS = list(dict.fromkeys(base.DECODER_TOKENS))
    base.random_text = random_text
    rng = random.Random(21)
    base.write(output, "unigram", unigram(False), rng, 120)
    base.write(output, "unigram_bytes", unigram(True), rng, 120)
    base.write(output, "word_piece", word_piece(), rng, 120)
    base.write(output, "word_level", word_level(), rng, 60)
    with open(output / "components_more.jsonl", "w") as file:
        for component in base.components(rng):
            file.write(json.dumps(component, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
