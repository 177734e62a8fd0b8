# Packages: torch, transformers (requirements.txt).
"""Makes tests/data/perplexity_golden.json: perplexities of random tokens by the definitions of llama.cpp's
llama-perplexity, for the random model tests/data/llama/plain, and its KL divergence from tests/data/llama/biases. The
log-probabilities are those of Hugging Face transformers.

    python tests/golden/perplexity_golden.py [--output DIRECTORY]
"""
import argparse
import json
import math
import pathlib
import statistics

import torch
from transformers import LlamaForCausalLM

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
NUM_TOKENS = 203
# Context, stride (0: chunks do not overlap) and the token that replaces the first one of a chunk.
CASES = [(32, 0, None), (32, 0, 1), (33, 0, 1), (64, 0, 1), (32, 8, None), (32, 9, 1), (64, 63, 1)]


def chunks(tokens, context, stride):
    """Returns each chunk with the positions in it that count."""
    if stride == 0:
        starts = range(0, len(tokens) - context + 1, context)
        counted = range(context // 2 + 1, context)
    else:
        starts = range(0, len(tokens) - context, stride)
        counted = range(context - stride, context)
    return [(tokens[start:start + context], counted) for start in starts]


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=DATA, metavar="DIRECTORY")
    output = parser.parse_args().output
    models = [LlamaForCausalLM.from_pretrained(DATA / "llama" / name, dtype=torch.float32).eval()
              for name in ("plain", "biases")]
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 64, (NUM_TOKENS,), generator=generator).tolist()
    cases = []
    for context, stride, bos in CASES:
        nlls = ([], [])
        divergences = []
        same_top = []
        selected = chunks(tokens, context, stride)
        for chunk, counted in selected:
            ids = list(chunk)
            if bos is not None:
                ids[0] = bos
            with torch.no_grad():
                own, reference = [torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), dim=-1)
                                  for model in models]
            for position in counted:
                # The logits after a token are those of the next one.
                q, p = own[position - 1], reference[position - 1]
                nlls[0].append(-q[ids[position]].item())
                nlls[1].append(-p[ids[position]].item())
                divergences.append((p.exp() * (p - q)).sum().item())
                same_top.append(float(p.argmax() == q.argmax()))
        means = [statistics.fmean(nll) for nll in nlls]
        ratio = math.exp(means[0] - means[1])
        cases.append({
            "context": context,
            "stride": stride,
            "bos": bos,
            "num_chunks": len(selected),
            "num_tokens": len(nlls[0]),
            "mean_nll": round(means[0], 6),
            "perplexity": round(math.exp(means[0]), 5),
            "uncertainty": round(math.exp(means[0]) * standard_error(nlls[0]), 5),
            "reference_mean_nll": round(means[1], 6),
            "ratio": round(ratio, 6),
            # The standard error of the mean of the differences.
            "ratio_uncertainty": round(ratio * standard_error([q - p for q, p in zip(*nlls)]), 6),
            "kl": round(statistics.fmean(divergences), 6),
            "kl_uncertainty": round(standard_error(divergences), 6),
            "max_kl": round(max(divergences), 6),
            "same_top": round(statistics.fmean(same_top), 6),
        })
    path = output / "perplexity_golden.json"
    path.write_text('{"tokens": ' + json.dumps(tokens) + ',\n "cases": [\n' +
                    ",\n".join(json.dumps(case) for case in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
