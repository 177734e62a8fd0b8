"""Fails if a held-out question occurs in the training corpus: check_heldout.py WORK_DIRECTORY. Ignores case and final punctuation."""

import json
import pathlib
import sys

import numpy as np
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent


def main():
    work = pathlib.Path(sys.argv[1])
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    corpus = np.load(work / "corpus.npz")
    ids, offsets = corpus["ids"], corpus["offsets"]
    user, eos = tokenizer.token_to_id("<|user|>"), tokenizer.token_to_id("</s>")
    spans = []
    for i in range(len(offsets) - 1):
        row = ids[offsets[i]:offsets[i + 1]]
        for start in np.flatnonzero(row == user):
            end = start + 1 + int(np.argmax(row[start + 1:] == eos))
            spans.append(row[start + 1:end].tolist())
    asked = {text.lower().strip("?.! ") for text in tokenizer.decode_batch(spans)}
    rows = [json.loads(line) for line in (HERE / "heldout.jsonl").read_text().splitlines()]
    found = [row["q"] for row in rows if row["q"].lower().strip("?.! ") in asked]
    print(f"{len(asked)} different questions in the corpus; {len(found)} of {len(rows)} held-out questions among them: {found}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
