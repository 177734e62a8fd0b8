# Packages: none; numpy (requirements.txt) with --vllm.
"""Makes tests/data/spec_decode/ngram_drafts.json: texts of random token ids, and the drafts of vLLM's n-gram proposer for
them. The drafts come from a search of all positions by the proposer's rules.

    python tests/golden/ngram_drafts.py [--output DIRECTORY] [--vllm DIRECTORY]

--vllm also compares each draft with that of vLLM's own function, which is read from DIRECTORY/v1/spec_decode in an
unpacked vllm package and runs without numba. The committed file was compared with vllm 0.33.0.
"""

import argparse
import ast
import json
import pathlib
import random

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "spec_decode"


def ngram_draft(tokens, min_n, max_n, k):
    """Finds the longest suffix of `tokens` with min_n to max_n tokens that also begins earlier, where it begins first."""
    for n in range(min(max_n, len(tokens) - 1), min_n - 1, -1):
        suffix = tokens[len(tokens) - n:]
        for begin in range(len(tokens) - n):
            if tokens[begin:begin + n] == suffix:
                return tokens[begin + n:begin + n + k]
    return []


def vllm_ngram_draft(package):
    import numpy

    name = "_find_longest_matched_ngram_and_propose_tokens"
    tree = ast.parse((package / "v1" / "spec_decode" / "ngram_proposer.py").read_text())
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    function.decorator_list = []
    scope = {"np": numpy}
    exec(compile(ast.Module([function], []), name, "exec"), scope)

    def draft(tokens, min_n, max_n, k):
        array = numpy.array(tokens, dtype=numpy.int32)
        return scope[name](array, min_n, max_n, len(tokens) + k, k).tolist()

    return draft


def random_tokens(rng):
    length = rng.randrange(61)
    alphabet = rng.sample([0, 1, 2, 7, 151643], rng.randrange(2, 6))
    kind = rng.choice(["random", "random", "periodic", "copy"])
    tokens = rng.choices(alphabet, k=length)
    if kind == "periodic":
        period = rng.randrange(1, 8)
        tokens = (tokens[:period] * length)[:length]
        for _ in range(rng.randrange(3) if tokens else 0):
            tokens[rng.randrange(length)] = rng.choice(alphabet)
    elif kind == "copy" and length > 2:
        begin = rng.randrange(length // 2)
        copied = tokens[begin:begin + rng.randrange(1, length // 2 + 1)]
        tokens[length - len(copied):] = copied
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    parser.add_argument("--vllm", type=pathlib.Path, metavar="DIRECTORY")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    reference = vllm_ngram_draft(arguments.vllm) if arguments.vllm else ngram_draft
    rng = random.Random(2026)
    cases = []
    while len(cases) < 400:
        tokens = random_tokens(rng)
        min_n = rng.choice([1, 1, 2, 2, 3, 5])
        max_n = min_n + rng.choice([0, 0, 1, 2, 5, 60])
        k = rng.choice([1, 2, 3, 8, 64])
        drafts = ngram_draft(tokens, min_n, max_n, k)
        if drafts != reference(tokens, min_n, max_n, k):
            raise SystemExit(f"vLLM drafts other tokens: {tokens}, min {min_n}, max {max_n}, k {k}")
        cases.append({"min": min_n, "max": max_n, "k": k, "token_ids": tokens, "drafts": drafts})
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    text = '{"made_by":"tests/golden/ngram_drafts.py","cases":[\n' + lines + "\n]}\n"
    (arguments.output / "ngram_drafts.json").write_text(text)


if __name__ == "__main__":
    main()
