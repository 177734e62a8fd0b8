"""Makes tests/data/tokenizer/sentencepiece: small SentencePiece models and what the library (0.2.3) makes of texts.

NAME.model, NAME.jsonl {text, ids, decode}; some models are changed after training: unused pieces, no byte pieces.
Run: python tests/golden/tokenizer_sentencepiece_golden.py   (models that are there are kept, so that it is deterministic)
"""

import io
import json
import random

import sentencepiece
import tokenizer_golden as base
import tokenizer_models_golden as more
import tokenizer_proto as proto

OUT = base.OUT / "sentencepiece"
RULES_PATH = "/tmp/rules.tsv"
MODELS = {
    "unigram": dict(model_type="unigram", normalization_rule_tsv=RULES_PATH),
    "unigram_bytes": dict(
        model_type="unigram", byte_fallback=True, vocab_size=520, normalization_rule_name="identity",
        user_defined_symbols=["<extra>", "keeper's", "\u2581the\u2581", "1"], control_symbols=["<ctl>"],
    ),
    "unigram_loose": dict(
        model_type="unigram", add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="identity",
        allow_whitespace_only_pieces=True, user_defined_symbols=["  ", "\n"],
    ),
    "bpe": dict(model_type="bpe", normalization_rule_tsv=RULES_PATH, pad_id=3, unk_surface=" (?) "),
    "bpe_bytes": dict(
        model_type="bpe", byte_fallback=True, vocab_size=560, add_dummy_prefix=True, remove_extra_whitespaces=False,
        normalization_rule_name="identity", user_defined_symbols=["<extra>", "house", "\u2581se", "  "],
        control_symbols=["<ctl>"], split_digits=True, allow_whitespace_only_pieces=True,
    ),
    "bpe_suffix": dict(
        model_type="bpe", treat_whitespace_as_suffix=True, normalization_rule_tsv=RULES_PATH, user_defined_symbols=["keeper"]
    ),
    "unigram_suffix": dict(model_type="unigram", treat_whitespace_as_suffix=True, normalization_rule_name="identity"),
    "bpe_unused": dict(model_type="bpe", normalization_rule_name="identity", byte_fallback=True, vocab_size=560),
    "unigram_unused": dict(model_type="unigram", normalization_rule_name="identity"),
}


def train(name, arguments):
    model = io.BytesIO()
    with open(RULES_PATH, "w") as file:
        for left, right in more.RULES:
            file.write(" ".join(f"{ord(c):X}" for c in left) + "\t" + " ".join(f"{ord(c):X}" for c in right) + "\n")
    arguments = dict(dict(vocab_size=280, hard_vocab_limit=False, character_coverage=0.99), **arguments)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(base.TEXT.splitlines()), model_writer=model, minloglevel=2, num_threads=1, **arguments
    )
    fields = proto.parse(model.getvalue())
    if name.endswith("_unused"):
        # Every seventh ordinary piece of several characters is there but not to be used.
        count = 0
        for i, (number, kind, value) in enumerate(fields):
            if number != 1:
                continue
            piece = proto.parse(value)
            if proto.get(piece, 3, 1) == 1 and len(proto.get(piece, 1).decode()) > 1:
                count += 1
                if count % 7 == 0:
                    fields[i] = (1, 2, proto.dump(proto.replaced(piece, 3, 0, 5)))
    # What it was trained with is nobody's business: paths.
    fields = [
        (n, k, proto.dump([f for f in proto.parse(v) if f[0] not in (1, 2, 31, 30)])) if n == 2 else (n, k, v)
        for n, k, v in fields
    ]
    return proto.dump(fields)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rng = random.Random(22)
    for name, arguments in MODELS.items():
        path = OUT / f"{name}.model"
        if not path.exists():
            path.write_bytes(train(name, arguments))
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        texts = ["", " ", "   ", "a", " the  house ", "\u2581a", "keeper's keeper", "<extra><ctl><s></s><unk><0x41>"]
        texts += base.TEXT.splitlines() + [more.random_text(rng) for _ in range(110)]
        with open(OUT / f"{name}.jsonl", "w") as file:
            for text in texts:
                ids = processor.encode(text)
                file.write(json.dumps({"text": text, "ids": ids, "decode": processor.decode(ids)}, separators=(",", ":")) + "\n")
            for _ in range(40):
                ids = [rng.randrange(processor.vocab_size()) for _ in range(rng.randrange(1, 9))]
                file.write(json.dumps({"ids": ids, "decode": processor.decode(ids)}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
