#!/usr/bin/env python3
"""Prints a random sample of comments, messages, test names and documentation lines, for a review of the language.

    scripts/sample_texts.py [--seed 1] [--count 200]

A comment is a block of adjacent comment lines. A message is a string literal with at least three words. The same seed and
tree produce the same sample.
"""
import argparse
import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"\.(h|cc|inl)$")


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\n") if name]


def comments(text):
    block, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        whole = re.match(r"\s*//\s?(.*)", line)
        if whole:
            first = first if block else number
            block.append(whole[1])
            continue
        if block and not block[0].startswith(("namespace", "clang-format")):
            yield first, " ".join(block)
        block = []
        trailing = re.search(r"[;{},)]\s+//\s(.*)", line)
        if trailing and not trailing[1].startswith(("namespace", "clang-format")):
            yield number, trailing[1]


def messages(text):
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(//|#include)", line):
            continue
        for literal in re.findall(r'"((?:\\.|[^"\\])*)"', line):
            if re.search(r"[A-Za-z]{2,} [a-z]{2,}.* ", literal) and not re.search(r"[{}<>|]", literal):
                yield number, literal


def test_names(text):
    for match in re.finditer(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", text, re.M):
        yield text.count("\n", 0, match.start()) + 1, f"{match[1]}.{match[2]}"


def sentences(text):
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"[A-Za-z]{3,} [a-z]{2,}", line) and not line.startswith("    "):
            yield number, line.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    texts = []
    for name in tracked_files():
        if name.startswith(("tests/data/", "scripts/guide_model/", "app/guide_model/")):
            continue
        if SOURCE.search(name):
            kinds = (comments, messages, test_names) if name.startswith("tests/") else (comments, messages)
        elif name.endswith(".md"):
            kinds = (sentences,)
        else:
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        texts += [(name, line, found) for kind in kinds for line, found in kind(text)]
    for name, line, found in sorted(random.Random(options.seed).sample(texts, min(options.count, len(texts)))):
        print(f"{name}:{line}: {found}")


if __name__ == "__main__":
    main()
