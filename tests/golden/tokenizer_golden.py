# Packages: tokenizers (requirements.txt).
"""Makes the BPE files of tests/data/tokenizer with the `tokenizers` package, the reference for tokenizer/.

byte_level.json, byte_fallback.json    two small BPE tokenizers, trained here
byte_level.jsonl, byte_fallback.jsonl  texts with the reference's ids and decoded texts, one object per line
components.jsonl                       each normalizer, pre-tokenizer, post-processor and decoder on its own

    python tests/golden/tokenizer_golden.py [--output DIRECTORY]
"""

import argparse
import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers, Regex

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "tokenizer"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXT = """The keeper of the lighthouse counted the ships. There were 12 in the morning and 345 at night, he'd say.
"Don't you see the others?" asked the girl who had come with the boat; she couldn't, and they weren't there.
for (int i = 0; i < count; ++i) { total += values[i]; }  // the sum of the values
The sea was green, the stones were grey, the house was white. Nobody knew where the keeper's children had gone.
Der Leuchtturm steht am Meer. Le phare est près de la mer. El faro está cerca del mar. 灯台は海の近くにあります。
"""
SNIPPETS = (
    "the ships|The keeper's|he'd|DON'T|we'LL|it\u2019s|'\u017f|12345|3.14|\u00bd|\u0661\u0662|x == y;|//|...|--|caf\u00e9|"
    "cafe\u0301|\u212b|\ufb01|\uff76\uff9e|\u706f\u53f0|\uc548\ub155|\u1112\u1161\u11ab|\U0001f600|\U0001f468\u200d\U0001f469|"
    "\u0e2a\u0e27\u0e31|\u2581|\u2581\u2581a|<unk>|<s>|</s>|<|end|>|[LS]|[RS]|[SW]|[NN]|aBc|\u0130|\u00df|_|\ufffd|\x00|$5+3^2|"
    "hello-world--again|a,b|#"
).split("|")
SPACES = ["", "", " ", " ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n ", "\u00a0", "\u3000", "\u0085"]


def random_text(rng):
    parts = []
    for _ in range(rng.randrange(1, 9)):
        parts.append(rng.choice(SNIPPETS))
        parts.append(rng.choice(SPACES))
    if rng.random() < 0.3:
        parts.insert(0, rng.choice(SPACES))
    return "".join(parts)


def vectors(tokenizer, rng, count):
    texts = ["", " ", "\n", "a", "The keeper of the lighthouse."] + [random_text(rng) for _ in range(count)]
    rows = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        special = tokenizer.encode(text).ids
        rows.append(
            {
                "text": text,
                "ids": ids,
                "ids_special": special,
                "decode": tokenizer.decode(ids, skip_special_tokens=False),
                "decode_skip_special": tokenizer.decode(special, skip_special_tokens=True),
            }
        )
    return rows


def write(output, name, tokenizer, rng, count=90):
    tokenizer.save(str(output / f"{name}.json"), pretty=False)
    with open(output / f"{name}.jsonl", "w") as file:
        for row in vectors(tokenizer, rng, count):
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


ADDED = [
    AddedToken("<|end|>", special=True, normalized=False),
    AddedToken("[LS]", lstrip=True, normalized=False),
    AddedToken("[RS]", rstrip=True, normalized=False),
    AddedToken("[SW]", single_word=True, normalized=False),
    AddedToken("[NN]", normalized=True),
]


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480,
        special_tokens=["<s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(True), trainer)
    tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> $A <|end|>", special_tokens=[("<s>", 0), ("<|end|>", 480)]),
        ]
    )
    assert tokenizer.token_to_id("<|end|>") == 480
    return tokenizer


def byte_fallback():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += [token for token, _ in sorted(trained["vocab"].items(), key=lambda item: item[1])]
    tokenizer = Tokenizer(
        models.BPE(
            {token: i for i, token in enumerate(tokens)},
            [tuple(merge) for merge in trained["merges"]],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens[:3]])
    tokenizer.add_tokens(ADDED)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


NORMALIZERS = {
    "NFC": normalizers.NFC(),
    "NFD": normalizers.NFD(),
    "NFKC": normalizers.NFKC(),
    "NFKD": normalizers.NFKD(),
    "Lowercase": normalizers.Lowercase(),
    "StripAccents after NFD": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
    "Strip left": normalizers.Strip(True, False),
    "Strip right": normalizers.Strip(False, True),
    "Strip": normalizers.Strip(),
    "Prepend": normalizers.Prepend("_"),
    "Replace string": normalizers.Replace("  ", "_"),
    "Replace regex": normalizers.Replace(Regex(r"\s+"), " "),
    "ByteLevel": normalizers.ByteLevel(),
}


def pre_tokenizer_list():
    result = {
        "ByteLevel": pre_tokenizers.ByteLevel(add_prefix_space=False),
        "ByteLevel with prefix space": pre_tokenizers.ByteLevel(add_prefix_space=True),
        "ByteLevel without regex": pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        "Digits": pre_tokenizers.Digits(False),
        "Digits, each": pre_tokenizers.Digits(True),
        "Whitespace": pre_tokenizers.Whitespace(),
        "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(),
        "BertPreTokenizer": pre_tokenizers.BertPreTokenizer(),
        "Digits, then ByteLevel": pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        ),
        "WhitespaceSplit, then Metaspace first": pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]
        ),
        "Split at nothing": pre_tokenizers.Split("", "isolated"),
        "Split letters by regex": pre_tokenizers.Split(Regex(r"[a-c]+|\p{Nd}(?=\p{Nd})"), "isolated"),
        "Split, empty matches": pre_tokenizers.Split(Regex(r"a*"), "isolated"),
        "Split Llama 3": pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        "Split Qwen 2": pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
    }
    for scheme in ["always", "first", "never"]:
        for split in [True, False]:
            result[f"Metaspace {scheme} {split}"] = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    for behavior in ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]:
        result[f"Split {behavior}"] = pre_tokenizers.Split("-", behavior)
        result[f"Split {behavior}, inverted"] = pre_tokenizers.Split(Regex(r"\w+"), behavior, invert=True)
        result[f"Punctuation {behavior}"] = pre_tokenizers.Punctuation(behavior)
    return result


DECODERS = {
    "none": None,
    "ByteLevel": decoders.ByteLevel(),
    "Metaspace always": decoders.Metaspace(prepend_scheme="always"),
    "Metaspace first": decoders.Metaspace(prepend_scheme="first"),
    "Metaspace never": decoders.Metaspace(prepend_scheme="never"),
    "WordPiece": decoders.WordPiece("##", True),
    "WordPiece without cleanup": decoders.WordPiece("##", False),
    "BPEDecoder": decoders.BPEDecoder("</w>"),
    "ByteFallback": decoders.ByteFallback(),
    "Fuse": decoders.Fuse(),
    "Strip": decoders.Strip(" ", 1, 0),
    "Strip both ends of the text": decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 2, 2)]),
    "Strip the end of the text": decoders.Sequence([decoders.Fuse(), decoders.Strip("a", 0, 3)]),
    "Replace string": decoders.Replace("a b", "_"),
    "Replace across tokens": decoders.Sequence([decoders.Fuse(), decoders.Replace("a ", "<>")]),
    "Replace regex": decoders.Replace(Regex(r"[ab]+"), "x"),
    "Replace regex across tokens": decoders.Sequence([decoders.Fuse(), decoders.Replace(Regex(r"\s+"), "_")]),
    "ByteLevel, then Strip": decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)]),
    "Llama 2": decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    ),
}
DECODER_TOKENS = (
    "a|b|a b|\u2581Hello|\u2581|\u2581\u2581wor\u2581|\u0120the|\u010a|\u00e4|\u00b8|\u0143|\u00f0|\u0141|##ing|word</w>|</w>|"
    "<0xE4>|<0xB8>|<0xAD>|<0xF0>|<0x9F>|<0x41>|<0x0A>|<0xFF>|<0xzz>|<0x411>| |  | a|a |aa |.| .| ,|n't| do not|'s|\u4e2d|</s>"
).split("|")
POST_PROCESSORS = {
    "Roberta": processors.RobertaProcessing(("</s>", 1), ("<s>", 0)),
    "Bert": processors.BertProcessing(("</s>", 1), ("<s>", 0)),
    "Template": processors.TemplateProcessing(single="<s> <s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]),
}


def part(tokenizer, key):
    return json.loads(tokenizer.to_str())[key]


def encode_cases(key, component, rng):
    """Makes cases that show where words end. For each character c, the vocabulary contains `c` and `c</w>`."""
    texts = [random_text(rng) for _ in range(6)] + ["the-final--countdown-", "-a--b", " a  b ", "aab12c"]
    tokenizer = Tokenizer(models.BPE())
    setattr(tokenizer, key, component)
    characters = set()
    for text in texts:
        if tokenizer.normalizer is not None:
            text = tokenizer.normalizer.normalize_str(text)
        words = [(text, None)]
        if tokenizer.pre_tokenizer is not None:
            words = tokenizer.pre_tokenizer.pre_tokenize_str(text)
        characters.update(c for word, _ in words for c in word)
    vocab = {"<s>": 0, "</s>": 1}
    for c in sorted(characters):
        vocab.setdefault(c, len(vocab))
        vocab.setdefault(c + "</w>", len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab, [], end_of_word_suffix="</w>"))
    setattr(tokenizer, key, component)
    return vocab, [{"text": text, "ids": tokenizer.encode(text).ids} for text in texts], part(tokenizer, key)


def components(rng):
    result = []
    groups = [
        ("normalizer", NORMALIZERS),
        ("pre_tokenizer", pre_tokenizer_list()),
        ("post_processor", POST_PROCESSORS),
    ]
    for key, group in groups:
        for name, component in group.items():
            vocab, cases, spec = encode_cases(key, component, rng)
            result.append({"name": f"{key} {name}", "key": key, "spec": spec, "vocab": vocab, "encode": cases})
    for name, component in DECODERS.items():
        vocab = {token: i for i, token in enumerate(DECODER_TOKENS)}
        tokenizer = Tokenizer(models.BPE(vocab, []))
        if component is not None:
            tokenizer.decoder = component
        cases = []
        while len(cases) < 15:
            ids = [rng.randrange(len(vocab)) for _ in range(rng.randrange(1, 9))]
            try:
                cases.append({"ids": ids, "text": tokenizer.decode(ids)})
            except BaseException:  # The reference panics if Strip would strip more than the text.
                continue
        result.append(
            {"name": f"decoder {name}", "key": "decoder", "spec": part(tokenizer, "decoder"), "vocab": vocab, "decode": cases}
        )
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    rng = random.Random(20)
    write(output, "byte_level", byte_level(), rng)
    write(output, "byte_fallback", byte_fallback(), rng)
    with open(output / "components.jsonl", "w") as file:
        for component in components(rng):
            file.write(json.dumps(component, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
