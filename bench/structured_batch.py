#!/usr/bin/env python3
"""Measures what structured output costs in a batch: bench/structured_batch.py VLLMCLI MODEL [PAIRS].

Runs 32 rows of 200 tokens without a constraint and the same prompts with 32 different schemas, in turns, with jump
decoding off and on, and prints the medians of tokens/s and of the ratios of neighboring runs. Then it runs one JSON answer
with long keys alone, and compares its tokens/s with those of a free answer of as many tokens.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile

WORDS = """alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi
chi psi omega one two three four five six seven eight""".split()
NUM_TOKENS = 200


def list_schema(word, number):
    item = {
        "name_" + word: {"type": "string", "minLength": 8, "maxLength": 60 + number},
        "count_" + word: {"type": "integer", "minimum": 0, "maximum": 100000 + number},
        "kind": {"enum": [word, "other_" + word, "none"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 30}, "maxItems": 5},
    }
    return object_schema({"items_of_" + word: {"type": "array", "minItems": 60, "items": object_schema(item)}})


def object_schema(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def long_keys_schema():
    keys = [
        "the full name of the person who is described", "whether this person has ever lived in another country",
        "the number of languages that the person speaks", "whether the person owns a car or a bicycle",
        "the year in which the person was born", "whether the person would like to receive messages"
    ]
    types = [{"type": "string", "maxLength": 10}, {"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 9},
             {"type": "boolean"}, {"type": "integer", "minimum": 1900, "maximum": 2020}, {"type": "boolean"}]
    return object_schema(dict(zip(keys, types)))


def run(binary, model, rows, flags):
    with tempfile.TemporaryDirectory() as directory:
        with open(directory + "/rows.jsonl", "w") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
        command = [binary, "batch", directory + "/rows.jsonl", "-m", model, "-o", directory + "/out.jsonl"] + flags
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        rate = float(re.search(r"\(([\d.]+) output tokens/s\)", result.stderr.replace(",", ""))[1])
        with open(directory + "/out.jsonl") as file:
            outputs = [json.loads(line)["outputs"][0] for line in file]
    return rate, sum(len(output["token_ids"]) for output in outputs)


def main():
    binary, model = sys.argv[1:3]
    num_pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    step_by_step = ["--no-enable-jump-decoding"]
    free, constrained = [], []
    for number, word in enumerate(WORDS):
        row = {"prompt": f"A long list about {word} with names and counts as JSON:", "max_tokens": NUM_TOKENS,
               "seed": number}
        free.append({**row, "ignore_eos": True})
        constrained.append({**row, "structured_outputs": {"json": list_schema(word, number)}})
    report(binary, model, num_pairs, "32 rows", [("free", free, []), ("constrained", constrained, step_by_step),
                                                 ("constrained, jump decoding", constrained, [])])

    person = {"prompt": "A person as JSON:", "max_tokens": 400, "seed": 1,
              "structured_outputs": {"json": long_keys_schema()}}
    _, num_tokens = run(binary, model, [person], [])
    alone = {"prompt": "A person as JSON:", "max_tokens": num_tokens, "seed": 1, "ignore_eos": True}
    report(binary, model, num_pairs, f"one answer of {num_tokens} tokens with long keys",
           [("free", [alone], []), ("constrained", [person], step_by_step),
            ("constrained, jump decoding", [person], [])])


def report(binary, model, num_pairs, title, kinds):
    rates = {name: [] for name, _, _ in kinds}
    for _ in range(num_pairs):
        for name, rows, flags in kinds:
            rates[name].append(run(binary, model, rows, flags)[0])
    print(title)
    baseline = rates[kinds[0][0]]
    for name, values in rates.items():
        ratio = statistics.median(value / base for value, base in zip(values, baseline))
        print(f"  {name:28} {statistics.median(values):8.1f} tokens/s  {ratio:.3f} x free")


if __name__ == "__main__":
    main()
