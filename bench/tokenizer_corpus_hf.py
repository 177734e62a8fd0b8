#!/usr/bin/env python3
"""Measures the same as tokenizer_corpus_bench, with Hugging Face `tokenizers` on one thread.

Usage: python bench/tokenizer_corpus_hf.py DIRECTORY TEXT...
"""

import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer  # noqa: E402

ROUNDS = 5


def best_of(work, prepare=lambda: None):
    best = 1e9
    for _ in range(ROUNDS):
        prepared = prepare()
        start = time.process_time()
        work(prepared)
        best = min(best, time.process_time() - start)
    return best


def load(directory):
    if os.path.exists(f"{directory}/tokenizer.json"):
        return Tokenizer.from_file(f"{directory}/tokenizer.json")
    from tokenizers import ByteLevelBPETokenizer

    return ByteLevelBPETokenizer(f"{directory}/vocab.json", f"{directory}/merges.txt")


def main():
    directory, *paths = sys.argv[1:]
    print(f"load {best_of(lambda _: load(directory)) * 1e3:.1f} ms")
    tokenizer = load(directory)
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        size = len(text.encode()) / 1e6
        lines = text.splitlines(True)
        num_ids = sum(len(tokenizer.encode(line, add_special_tokens=False).ids) for line in lines)
        by_line = best_of(lambda fresh: [fresh.encode(line, add_special_tokens=False) for line in lines], lambda: load(directory))
        whole = best_of(lambda fresh: fresh.encode(text, add_special_tokens=False), lambda: load(directory))
        print(f"{path}: {num_ids} ids, lines {size / by_line:.2f} MB/s, whole {size / whole:.2f} MB/s")


main()
