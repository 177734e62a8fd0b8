# Packages: torch, transformers (requirements.txt).
"""Makes tests/data/beam_search_golden.json: the sequences that the beam search of Hugging Face transformers finds with
the random model tests/data/llama/plain, and their scores. No token ends a sequence, because the rules differ there: see
docs/BEAM_SEARCH.md.

    python tests/golden/beam_search_golden.py [--output DIRECTORY]
"""
import argparse
import json
import pathlib

import torch
from transformers import LlamaForCausalLM

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
PROMPTS = [[5, 9, 33, 60, 17, 4, 41], list(range(3, 40))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=DATA, metavar="DIRECTORY")
    output = parser.parse_args().output
    model = LlamaForCausalLM.from_pretrained(DATA / "llama" / "plain", dtype=torch.float32).eval()
    cases = []
    for prompt in PROMPTS:
        for width in (2, 3, 6):
            for length_penalty in (0.0, 1.0, 2.0):
                ids = torch.tensor([prompt])
                result = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False,
                                        num_beams=width, num_return_sequences=width, length_penalty=length_penalty,
                                        early_stopping="never", eos_token_id=None, pad_token_id=0,
                                        return_dict_in_generate=True, output_scores=True)
                cases.append({
                    "prompt_token_ids": prompt,
                    "beam_width": width,
                    "length_penalty": length_penalty,
                    "token_ids": [s[len(prompt):].tolist() for s in result.sequences],
                    "scores": [round(float(s), 6) for s in result.sequences_scores],
                })
    path = output / "beam_search_golden.json"
    path.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
