#!/usr/bin/env python3
"""Runs constrained rows under many schedules: scripts/check_structured_rows.py VLLMCLI [ROWS [MODEL]].

Makes ROWS (10,000) rows of random schemas, regular expressions and choices, with n, logprobs, stop strings, min_tokens,
bad_words and priorities, at a temperature at which any token is likely. Runs them with one token per step and then with
jump decoding, small chunks, preemption and two ranks. No row may fail, every complete answer must be valid, and every run
must give the same tokens. Two ranks sum in another order, so only the validity of their answers is checked.

Needs the Python package jsonschema (pip install jsonschema==4.23.0).
"""

import json
import random
import re
import subprocess
import sys
import tempfile

import jsonschema


def string_schema(rng):
    return rng.choice([
        {"type": "string", "maxLength": rng.randint(0, 6)},
        {"type": "string", "minLength": 2, "maxLength": rng.randint(2, 5)},
        {"type": "string", "pattern": rng.choice(["^[a-c]{1,3}$", "^(yes|no)$", "^[0-9]{2}-[A-Z]$", "^é+\\.$"])},
        {"enum": rng.sample(["red", "green", "blue", "a\"b", "日本", "x y"], rng.randint(1, 4))},
        {"type": "string", "format": rng.choice(["date", "uuid", "ipv4", "time"])},
    ])


def number_schema(rng):
    low = rng.randint(-50, 50)
    return rng.choice([
        {"type": "integer", "minimum": low, "maximum": low + rng.randint(0, 200)},
        {"type": "number", "minimum": low, "exclusiveMaximum": low + 1},
        {"type": "integer", "multipleOf": rng.choice([2, 5, 7]), "minimum": 0, "maximum": 1000},
        {"const": rng.choice([0, 1.5, -3, 1000])},
    ])


def schema(rng, depth):
    kind = rng.randint(0, 9 if depth > 0 else 4)
    if kind <= 1:
        return string_schema(rng)
    if kind <= 3:
        return number_schema(rng)
    if kind == 4:
        return rng.choice([{"type": "boolean"}, {"type": "null"}, {"enum": [1, "1", None, True, [1]]}])
    if kind == 5:
        return {"type": "array", "items": schema(rng, depth - 1), "minItems": rng.randint(0, 2), "maxItems": 3}
    if kind == 6:
        return {"type": "array", "items": {"enum": [1, 2, 3, "a"]}, "uniqueItems": True, "maxItems": 4}
    if kind == 7:
        return {"anyOf": [schema(rng, depth - 1), schema(rng, depth - 1)]}
    if kind == 8:
        return {"type": "object", "maxProperties": 2, "additionalProperties": schema(rng, depth - 1),
                "propertyNames": {"maxLength": 4}}
    names = rng.sample(["name", "the age of the person", "ok", "é", "tags", "id"], rng.randint(1, 4))
    return {"type": "object", "properties": {name: schema(rng, depth - 1) for name in names},
            "required": rng.sample(names, rng.randint(0, len(names))), "additionalProperties": False}


REGEXES = ["[a-f]{3,6}", "(ab|cd)*e", r"\d{4}-\d{2}-\d{2}", "x?y?z?!", "(red|green) [0-9]+%"]


def make_row(rng, number):
    row = {"prompt": "q" * rng.randint(1, 60), "max_tokens": rng.randint(20, 60), "temperature": 2.0, "seed": number,
           "priority": rng.randint(0, 2)}
    kind = rng.randint(0, 9)
    if kind <= 7:
        constraint = {"json": schema(rng, 2), "any_order": rng.random() < 0.3}
        if rng.random() < 0.3:
            constraint["disable_any_whitespace"] = False
    elif kind == 8:
        constraint = {"regex": rng.choice(REGEXES)}
    else:
        constraint = {"choice": rng.sample(["yes", "no", "perhaps not", "é😀", "yes, of course"], 3)}
    row["structured_outputs"] = constraint
    if rng.random() < 0.1:
        row["n"] = 2
    if rng.random() < 0.1:
        row["logprobs"] = 2
    if rng.random() < 0.1:
        row["min_tokens"] = rng.randint(1, 10)
    if rng.random() < 0.1:
        row["stop"] = ["zq"]
    if rng.random() < 0.1:
        row["bad_words"] = ["the"]
    return row


def is_valid(constraint, text):
    if "regex" in constraint:
        return re.fullmatch(constraint["regex"], text) is not None
    if "choice" in constraint:
        return text in constraint["choice"]
    checker = jsonschema.Draft202012Validator(constraint["json"],
                                              format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    try:
        return checker.is_valid(json.loads(text))
    except ValueError:
        return False


def run(program, model, path, flags):
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "batch", path, "-m", model, "-o", directory + "/out.jsonl", "--ephemeral", "--quiet"] + flags
        subprocess.run(command, check=False)
        with open(directory + "/out.jsonl") as file:
            return {record["index"]: record for record in map(json.loads, file)}


def check(rows, records, name):
    counts = {"complete": 0, "cut": 0, "error": 0, "wrong": 0}
    for index, row in enumerate(rows):
        record = records[index]
        if "outputs" not in record:
            counts["error"] += 1
            print(f"{name}: row {index}: {record.get('error')}")
            continue
        for output in record["outputs"]:
            if not output["valid"]:
                counts["cut" if output["finish_reason"] == "length" or output["stop_reason"] else "wrong"] += 1
            elif is_valid(row["structured_outputs"], output["text"]):
                counts["complete"] += 1
            else:
                counts["wrong"] += 1
                print(f"{name}: row {index}: {row['structured_outputs']}: {output['text']!r}")
    print(f"{name}: {counts}", flush=True)
    return counts["wrong"] == 0 and counts["error"] == 0


def tokens(records):
    return {index: [output["token_ids"] for output in record.get("outputs", [])] for index, record in records.items()}


def main():
    program = sys.argv[1]
    num_rows = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    model = sys.argv[3] if len(sys.argv) > 3 else "guide"
    rng = random.Random(20)
    rows = [make_row(rng, number) for number in range(num_rows)]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
        file.flush()
        base = run(program, model, file.name, ["--no-enable-jump-decoding", "--no-enable-prefix-caching"])
        is_good = check(rows, base, "one token per step")
        base_tokens = tokens(base)
        schedules = {
            "jump decoding": [],
            "small chunks": ["--max-num-batched-tokens", "33", "--max-num-seqs", "7"],
            "preemption": ["--num-kv-blocks", "60", "--scheduling-policy", "priority"],
            "two ranks": ["--tensor-parallel-size", "2"],
        }
        for name, flags in schedules.items():
            records = run(program, model, file.name, flags)
            is_good = check(rows, records, name) and is_good
            row_tokens = tokens(records)
            different = [index for index in base_tokens if row_tokens[index] != base_tokens[index]]
            if name != "two ranks" and different:
                print(f"{name}: {len(different)} rows have other tokens, such as {different[:5]}")
                is_good = False
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
