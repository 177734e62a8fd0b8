# Packages: sentencepiece, tokenizers (requirements.txt).
"""Makes tests/data/tokenizer/sentencepiece: small SentencePiece models, and the library's results for texts and ids.

NAME.model  a model, trained here; in the *_unused models, some pieces are then marked as unused, and in the *_ties models,
            scores are rounded to multiples of 0.3, so that many divisions of a text have almost the same score
NAME.jsonl  {text, ids, decode} or {ids, decode}, one object per line

    python tests/golden/tokenizer_sentencepiece_golden.py [--output DIRECTORY]
"""

import argparse
import io
import json
import pathlib
import random
import struct
import tempfile

import sentencepiece
import tokenizer_golden as base
import tokenizer_models_golden as more
import tokenizer_proto as proto

OUT = base.OUT / "sentencepiece"
# The path of the rule file in the models. The library does not open this file when it loads a model.
RULES_PATH = b"/tmp/rules.tsv"
MODELS = {
    "unigram": dict(model_type="unigram", rules=True),
    "unigram_bytes": dict(
        model_type="unigram", byte_fallback=True, vocab_size=520, normalization_rule_name="identity",
        user_defined_symbols=["<extra>", "keeper's", "\u2581the\u2581", "1"], control_symbols=["<ctl>"],
    ),
    "unigram_loose": dict(
        model_type="unigram", add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="identity",
        allow_whitespace_only_pieces=True, user_defined_symbols=["  ", "\n"],
    ),
    "bpe": dict(model_type="bpe", rules=True, pad_id=3, unk_surface=" (?) "),
    "bpe_bytes": dict(
        model_type="bpe", byte_fallback=True, vocab_size=560, add_dummy_prefix=True, remove_extra_whitespaces=False,
        normalization_rule_name="identity", user_defined_symbols=["<extra>", "house", "\u2581se", "  "],
        control_symbols=["<ctl>"], split_digits=True, allow_whitespace_only_pieces=True,
    ),
    "bpe_suffix": dict(
        model_type="bpe", treat_whitespace_as_suffix=True, rules=True, user_defined_symbols=["keeper"]
    ),
    "unigram_suffix": dict(model_type="unigram", treat_whitespace_as_suffix=True, normalization_rule_name="identity"),
    "bpe_unused": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, vocab_size=560),
    "unigram_unused": dict(model_type="unigram", normalization_rule_name="identity"),
    "unigram_ties": dict(model_type="unigram", vocab_size=400),
}


def train(name, arguments):
    model = io.BytesIO()
    arguments = dict(dict(vocab_size=280, hard_vocab_limit=False, character_coverage=0.99), **arguments)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        if arguments.pop("rules", False):
            more.write_rules(more.RULES, file)
            arguments["normalization_rule_tsv"] = file.name
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(base.TEXT.splitlines()), model_writer=model, minloglevel=2, num_threads=1, **arguments
        )
    fields = proto.parse(model.getvalue())
    if name.endswith("_unused"):
        # Mark every seventh normal piece of several characters as unused.
        count = 0
        for i, (number, kind, value) in enumerate(fields):
            if number != 1:
                continue
            piece = proto.parse(value)
            if proto.get(piece, 3, 1) == 1 and len(proto.get(piece, 1).decode()) > 1:
                count += 1
                if count % 7 == 0:
                    fields[i] = (1, 2, proto.dump(proto.replaced(piece, 3, 0, 5)))
    if name.endswith("_ties"):
        for i, (number, kind, value) in enumerate(fields):
            piece = proto.parse(value) if number == 1 else []
            if number != 1 or proto.get(piece, 3, 1) != 1:
                continue
            (score,) = struct.unpack("<f", proto.get(piece, 2))
            score = -0.3 * max(1, round(-score / 0.3))
            fields[i] = (1, 2, proto.dump(proto.replaced(piece, 2, 5, struct.pack("<f", score))))
    # Loading needs neither the paths of training files (1, 2) nor the lists of symbols (30, 31).
    fields = [
        (n, k, proto.dump([f for f in proto.parse(v) if f[0] not in (1, 2, 31, 30)])) if n == 2 else (n, k, v)
        for n, k, v in fields
    ]
    return proto.dump([(n, k, with_rules_path(v) if n == 3 else v) for n, k, v in fields])


def with_rules_path(normalizer):
    """Returns the NormalizerSpec with RULES_PATH in place of the name of a temporary file."""
    fields = proto.parse(normalizer)
    if proto.get(fields, 6):
        fields = proto.replaced(fields, 6, 2, RULES_PATH)
    return proto.dump(fields)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    rng = random.Random(22)
    for name, arguments in MODELS.items():
        path = output / f"{name}.model"
        path.write_bytes(train(name, arguments))
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        texts = ["", " ", "   ", "a", " the  house ", "\u2581a", "keeper's keeper", "<extra><ctl><s></s><unk><0x41>"]
        texts += base.TEXT.splitlines() + [more.random_text(rng) for _ in range(110)]
        with open(output / f"{name}.jsonl", "w") as file:
            for text in texts:
                ids = processor.encode(text)
                file.write(json.dumps({"text": text, "ids": ids, "decode": processor.decode(ids)}, separators=(",", ":")) + "\n")
            for _ in range(40):
                ids = [rng.randrange(processor.vocab_size()) for _ in range(rng.randrange(1, 9))]
                file.write(json.dumps({"ids": ids, "decode": processor.decode(ids)}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
