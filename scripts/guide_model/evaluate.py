"""Scores a model on files of questions: evaluate.py MODEL_DIRECTORY QUESTIONS.jsonl... [--show]. Decodes greedily with bf16 weights."""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def is_right(answer, must):
    """Returns whether the answer contains every entry of `must`. An entry is a string or a list of alternatives separated by |."""
    lowered = answer.lower()
    return all(any(option.lower() in lowered for option in entry.split("|")) for entry in must)


def main():
    show = "--show" in sys.argv
    folder, *files = [a for a in sys.argv[1:] if a != "--show"]
    torch.set_num_threads(2)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).float().eval()

    def answer(messages):
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)["input_ids"]
        with torch.no_grad():
            out = model.generate(ids, max_new_tokens=150, do_sample=False, temperature=None, pad_token_id=2)[0, ids.shape[1]:]
        return tokenizer.decode(out, skip_special_tokens=True), int(out[-1]) == 2

    for file in files:
        rows = [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()]
        right = ended = 0
        for row in rows:
            messages = []
            for earlier in row.get("before", []):
                messages.append({"role": "user", "content": earlier})
                messages.append({"role": "assistant", "content": answer(messages)[0]})
            text, stopped = answer(messages + [{"role": "user", "content": row["q"]}])
            good = is_right(text, row["must"])
            right += good
            ended += stopped
            if show or not good or not stopped:
                print(f"{'ok  ' if good else 'MISS'} {row['q']}\n     -> {text}" + ("" if stopped else " [does not end]"))
        print(f"{file}: {right} of {len(rows)} right ({100 * right / len(rows):.1f} %), {ended} end with an EOS token")


if __name__ == "__main__":
    main()
