# Packages: torch (requirements.txt).
"""Makes tests/data/sampler_golden.json: the results of a sampler in torch for small rows of logits. The sampler applies
the operations of vLLM's V1 sampler in the same order. The results are the final distribution, and the raw logprobs
with their ranks.

    python tests/golden/sampler_golden.py [--output DIRECTORY]
"""

import argparse
import json
import pathlib
import random

import torch

OUT = pathlib.Path(__file__).resolve().parent.parent / "data"


def distribution(logits, params, prompt, output):
    logits = logits.clone().to(torch.float32)
    vocab = logits.numel()
    if params.get("allowed_token_ids") is not None:
        mask = torch.ones(vocab, dtype=torch.bool)
        mask[params["allowed_token_ids"]] = False
        logits.masked_fill_(mask, float("-inf"))
    for word in params.get("bad_words_token_ids", []):
        if len(word) > len(output) + 1:
            continue
        prefix = word[:-1]
        if (output[len(output) - len(prefix):] if prefix else []) == prefix:
            logits[word[-1]] = float("-inf")
    if len(output) < params.get("min_tokens", 0):
        for stop in params.get("stop_token_ids", []) + [params["eos_token_id"]]:
            logits[stop] = float("-inf")
    for token, bias in params.get("logit_bias", []):
        logits[token] += bias
    repetition = params.get("repetition_penalty", 1.0)
    counts = torch.bincount(torch.tensor(output, dtype=torch.long), minlength=vocab)
    seen = torch.bincount(torch.tensor(prompt + output, dtype=torch.long), minlength=vocab) > 0
    factor = torch.where(seen, torch.tensor(repetition), torch.tensor(1.0))
    logits *= torch.where(logits > 0, 1.0 / factor, factor)
    logits -= params.get("frequency_penalty", 0.0) * counts
    logits -= params.get("presence_penalty", 0.0) * (counts > 0)
    temperature = params.get("temperature", 1.0)
    if temperature == 0.0:
        probs = torch.zeros(vocab, dtype=torch.float64)
        probs[int(logits.argmax())] = 1.0
        return probs
    logits = (logits / temperature).to(torch.float64)
    min_p = params.get("min_p", 0.0)
    if min_p > 0.0:
        probs = logits.softmax(-1)
        logits.masked_fill_(probs < min_p * probs.max(), float("-inf"))
    top_k = params.get("top_k", 0)
    top_p = params.get("top_p", 1.0)
    if top_k > 0 or top_p < 1.0:
        ordered, index = logits.sort(dim=-1, descending=False, stable=True)
        if 0 < top_k < vocab:
            ordered.masked_fill_(ordered < ordered[vocab - top_k], float("-inf"))
        if top_p < 1.0:
            mask = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
            mask[-1] = False
            ordered.masked_fill_(mask, float("-inf"))
        logits = torch.empty_like(logits).scatter_(-1, index, ordered)
    return logits.softmax(-1)


def logprobs(logits, token, k):
    values = logits.to(torch.float64).log_softmax(-1)
    order = sorted(range(len(values)), key=lambda i: (-float(logits[i]), i))[:k]
    return {
        "token_id": token,
        "logprob": float(values[token]),
        "rank": int((logits >= logits[token]).sum()),
        "top_ids": order,
        "top_logprobs": [float(values[i]) for i in order],
    }


def random_params(rng, vocab):
    ids = lambda n: rng.sample(range(vocab), n)
    params = {"eos_token_id": 0}
    params["temperature"] = rng.choice([0.0, 0.5, 0.8, 1.0, 1.0, 2.0])
    if rng.random() < 0.4:
        params["top_k"] = rng.choice([1, 2, 5, 20, 40, vocab, vocab + 5])
    if rng.random() < 0.4:
        params["top_p"] = rng.choice([0.05, 0.3, 0.7, 0.9, 0.95])
    if rng.random() < 0.3:
        params["min_p"] = rng.choice([0.01, 0.07, 0.3, 1.0])
    if rng.random() < 0.3:
        params["repetition_penalty"] = rng.choice([0.7, 1.1, 1.3, 2.0])
    if rng.random() < 0.3:
        params["frequency_penalty"] = rng.choice([-1.0, 0.3, 2.0])
    if rng.random() < 0.3:
        params["presence_penalty"] = rng.choice([-2.0, 0.4, 1.5])
    if rng.random() < 0.3:
        params["logit_bias"] = [[i, round(rng.uniform(-8, 8), 2)] for i in ids(4)]
    if rng.random() < 0.2:
        params["allowed_token_ids"] = sorted(ids(12))
    if rng.random() < 0.2:
        params["bad_words_token_ids"] = [[3], [5, 7], [7, 5, 9], [1, 2, 3, 4]]
    if rng.random() < 0.2:
        params["min_tokens"] = rng.choice([1, 3, 6])
        params["stop_token_ids"] = ids(2)
    return params


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=OUT, metavar="DIRECTORY")
    directory = parser.parse_args().output
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(2026)
    torch.manual_seed(2026)
    cases = []
    while len(cases) < 120:
        vocab = rng.choice([11, 64, 70])
        # The logits are multiples of 1/8, so that equal logits are common and every logit is exact in float32.
        logits = (torch.randn(vocab) * rng.choice([0.5, 2.0, 4.0]) * 8).round() / 8
        if vocab == 11:
            params = {"temperature": rng.choice([0.7, 1.0]), "top_p": rng.choice([0.25, 0.6, 0.85])}
        else:
            params = random_params(rng, vocab)
        prompt = [rng.randrange(vocab) for _ in range(rng.randrange(1, 8))]
        output = rng.choice([[], [7], [5, 7], [7, 5], [1, 2, 3], [rng.randrange(vocab) for _ in range(6)]])
        probs = distribution(logits, params, prompt, output)
        if not bool(torch.isfinite(probs).all()):
            continue
        cases.append({
            "logits": [float(x) for x in logits],
            "params": params,
            "prompt_token_ids": prompt,
            "output_token_ids": output,
            "probs": [float(f"{float(p):.9g}") for p in probs],
            "logprobs": logprobs(logits, rng.randrange(vocab), 5),
        })
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    text = '{"made_by":"tests/golden/sampler_golden.py","cases":[\n' + lines + "\n]}\n"
    (directory / "sampler_golden.json").write_text(text)


if __name__ == "__main__":
    main()
