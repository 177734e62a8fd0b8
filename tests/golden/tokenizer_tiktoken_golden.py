# Packages: sentencepiece, tiktoken, tokenizers (requirements.txt).
"""Makes tests/data/tokenizer/tiktoken: a small file of token ranks, and the ids to which tiktoken encodes texts with several
patterns.

small.tiktoken  token ranks, trained here
PATTERN.jsonl   {text, ids}, one object per line

    python tests/golden/tokenizer_tiktoken_golden.py [--output DIRECTORY]
"""

import argparse
import base64
import json
import pathlib
import random

import tiktoken
import tiktoken_ext.openai_public as public
import tokenizer_golden as base
import tokenizer_models_golden as more
from tiktoken._educational import bpe_train

OUT = base.OUT / "tiktoken"
LLAMA3 = base.LLAMA3
QWEN = LLAMA3.replace("{1,3}", "")


def pattern(constructor):
    public.load_tiktoken_bpe = lambda *args, **kwargs: {}
    return constructor()["pat_str"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    ranks = bpe_train(base.TEXT * 3 + " \n\n  \n it's IT'S ///\n 2024", 420, LLAMA3, visualise=None)
    with open(output / "small.tiktoken", "wb") as file:
        for token, rank in ranks.items():
            file.write(base64.b64encode(token) + b" " + str(rank).encode() + b"\n")
    patterns = {
        "gpt2": public.r50k_pat_str,
        "cl100k_base": pattern(public.cl100k_base),
        "o200k_base": pattern(public.o200k_base),
        "llama3": LLAMA3,
        "qwen": QWEN,
    }
    rng = random.Random(23)
    for name, pat_str in patterns.items():
        encoding = tiktoken.Encoding(name, pat_str=pat_str, mergeable_ranks=ranks, special_tokens={})
        texts = ["", " \n ", "a \n ", "\n\n", "  a", "HelloWorld's", "don'T", "///\n/", "123456"] + base.TEXT.splitlines(True)
        texts += [more.random_text(rng) for _ in range(120)]
        with open(output / f"{name}.jsonl", "w") as file:
            for text in texts:
                file.write(json.dumps({"text": text, "ids": encoding.encode_ordinary(text)}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
