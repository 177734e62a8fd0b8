"""Trains the guide model: train.py WORK_DIRECTORY OUTPUT_DIRECTORY [--minutes M | --steps N]. Reads the output of make_corpus.py."""

import argparse
import json
import pathlib
import shutil
import time

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

import make_corpus

BATCH_TOKENS = 4096
PEAK_RATE = 3e-3
DECAY_SHARE = 0.5
DROPOUT = 0.1
QUESTION_WEIGHT = 0.05
QUESTION_NOISE = 0.06
# The first tokens of an answer decide which answer it is, and the rest is learned quickly. Cutting most texts there saves a third of the work.
CUT_SHARE, CUT_TOKENS = 0.55, 13


def config():
    return LlamaConfig(
        vocab_size=make_corpus.VOCAB_SIZE, hidden_size=256, intermediate_size=640, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, head_dim=32, hidden_act="silu", max_position_embeddings=1024, rms_norm_eps=1e-5, tie_word_embeddings=True,
        attention_bias=False, mlp_bias=False, bos_token_id=1, eos_token_id=2, pad_token_id=None, attention_dropout=0.0)


def batches(corpus, rng):
    """Yields one epoch in batches of about BATCH_TOKENS tokens. A batch has texts of similar length; the order of batches is random."""
    offsets = corpus["offsets"]
    lengths = np.diff(offsets)
    cut = (corpus["last_answers"] > 0) & (rng.random(len(lengths)) < CUT_SHARE)
    lengths = np.where(cut, np.minimum(lengths, corpus["last_answers"] + CUT_TOKENS), lengths)
    order = rng.permutation(len(lengths))
    pending = []
    for start in range(0, len(order), 4096):
        chunk = order[start:start + 4096]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batch = []
        for i in chunk:
            if batch and lengths[i] * (len(batch) + 1) > BATCH_TOKENS:
                pending.append(batch)
                batch = []
            batch.append(i)
        pending.append(batch)
        rng.shuffle(pending)
        for members in pending:
            width = int(max(lengths[i] for i in members))
            ids = np.full((len(members), width), 2, np.int64)
            weight = np.zeros((len(members), width), np.float32)
            for row, i in enumerate(members):
                n = int(lengths[i])
                span = slice(offsets[i], offsets[i] + n)
                ids[row, :n] = corpus["ids"][span]
                weight[row, :n] = np.where(corpus["mask"][span] == 1, 1.0, QUESTION_WEIGHT)
            yield torch.from_numpy(ids), torch.from_numpy(weight)
        pending = []


def save(model, work, out, seconds, steps):
    """Writes a Hugging Face model directory: bf16 weights without the tied lm_head, and the configuration files."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {k: v.detach().to(torch.bfloat16).contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    c = model.config
    fields = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "rope_theta": 10000.0, "rope_scaling": None}
    for key in ("vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim hidden_act "
                "max_position_embeddings rms_norm_eps tie_word_embeddings attention_bias mlp_bias bos_token_id eos_token_id").split():
        fields[key] = getattr(c, key)
    write = lambda name, value: (out / name).write_text(json.dumps(value, indent=2) + "\n")
    write("config.json", fields)
    write("generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "do_sample": False, "temperature": 0.0})
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True,
        "clean_up_tokenization_spaces": False, "model_max_length": c.max_position_embeddings, "chat_template": make_corpus.CHAT_TEMPLATE})
    shutil.copy(work / "tokenizer.json", out / "tokenizer.json")
    size = (out / "model.safetensors").stat().st_size
    print(f"saved {sum(v.numel() for v in weights.values())} parameters, {size} bytes, after {steps} steps and {seconds:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--steps", type=int, default=0, help="train for this many steps instead of --minutes")
    parser.add_argument("--start", type=pathlib.Path, help="directory of a model to continue training")
    parser.add_argument("--rate", type=float, default=PEAK_RATE)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(2)
    rng = np.random.default_rng(1)
    corpus = dict(np.load(args.work / "corpus.npz"))
    model = LlamaForCausalLM(config()).float()
    if args.start:
        model.load_state_dict(LlamaForCausalLM.from_pretrained(args.start, dtype=torch.float32).state_dict())
    drop = lambda module, inputs, output: torch.nn.functional.dropout(output, DROPOUT, module.training)
    model.model.embed_tokens.register_forward_hook(drop)
    for layer in model.model.layers:
        layer.self_attn.o_proj.register_forward_hook(drop)
        layer.mlp.down_proj.register_forward_hook(drop)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    # Muon needs about half as many steps as AdamW here. It works only for matrices between hidden layers.
    muon = torch.optim.Muon(matrices, lr=args.rate, momentum=0.95, weight_decay=0.1, ns_steps=4, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(others, lr=args.rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    optimizers = [muon, adam]
    model.train()
    start, step, running = time.time(), 0, []
    progress = 0.0
    while progress < 1:
        for ids, weight in batches(corpus, rng):
            progress = step / args.steps if args.steps else (time.time() - start) / (60 * args.minutes)
            if progress >= 1:
                break
            rate = args.rate * min(1, (step + 1) / 40) * min(1, (1.01 - progress) / DECAY_SHARE)
            for optimizer in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = rate
            # Question tokens are corrupted at random, so that the model does not depend on any single word of a question.
            noisy = ids.clone()
            blur = (weight == QUESTION_WEIGHT) & (ids > 5) & (torch.rand(ids.shape) < QUESTION_NOISE)
            noisy[blur] = torch.where(torch.rand(int(blur.sum())) < 0.5, 0, torch.randint(262, make_corpus.VOCAB_SIZE, (int(blur.sum()),)))
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model.model(input_ids=noisy[:, :-1], use_cache=False).last_hidden_state
                target_weight = weight[:, 1:].reshape(-1)
                # Predicts only a tenth of the question tokens, to save time.
                chosen = (target_weight == 1) | ((target_weight > 0) & (torch.rand(target_weight.shape) < 0.1))
                logits = model.lm_head(hidden.reshape(-1, hidden.shape[-1])[chosen])
            losses = torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:].reshape(-1)[chosen], reduction="none")
            w = torch.where(target_weight[chosen] == 1, 1.0, QUESTION_WEIGHT * 10)
            loss = (losses * w).sum() / w.sum()
            model.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer in optimizers:
                optimizer.step()
            step += 1
            running.append(float((losses.detach() * (w == 1)).sum() / (w == 1).sum()))
            if step % 25 == 0:
                print(f"step {step} progress {progress:.3f} answer loss {np.mean(running[-25:]):.4f} {time.time() - start:.0f} s", flush=True)
            if step % 200 == 0:
                save(model, args.work, args.work / "latest", time.time() - start, step)
    save(model, args.work, args.out, time.time() - start, step)


if __name__ == "__main__":
    main()
