"""Writes the tokenizer and the training corpus: make_corpus.py WORK_DIRECTORY [NUM_CONVERSATIONS [TOKENIZER]].

The output is reproducible byte for byte. TOKENIZER is the tokenizer.json of an earlier run. Use it to continue training that run's model.
"""

import json
import pathlib
import random
import sys

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import phrasing

HERE = pathlib.Path(__file__).parent
VOCAB_SIZE = 2048
SEED = 20240611
BOS, EOS = "<s>", "</s>"
ROLES = ["system", "user", "assistant"]
SPECIALS = ["<unk>", BOS, EOS] + [f"<|{role}|>" for role in ROLES]
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}{{ '<|assistant|>\\n' + message['content'] | trim + eos_token }}"
    "{% elif message['role'] == 'user' %}{{ '<|user|>' + message['content'] | trim + eos_token }}"
    "{% elif message['role'] == 'system' %}{{ '<|system|>' + message['content'] | trim + eos_token }}"
    "{% else %}{{ raise_exception('unknown role: ' + message['role']) }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}")


def train_tokenizer(texts):
    """Trains BPE with byte fallback as in Llama 2: U+2581 replaces each space, and the saved file has no pre-tokenizer.

    During training a pre-tokenizer keeps merges inside words. Because no merge crosses a space, the saved file needs no pre-tokenizer.
    """
    trainee = Tokenizer(models.BPE())
    trainee.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    trainee.pre_tokenizer = pre_tokenizers.Split(Regex("\u2581?[A-Za-z]+|\u2581?[0-9]|\u2581?[^A-Za-z0-9\u2581]+|\u2581"), "isolated")
    alphabet = [chr(c) for c in range(33, 127)] + ["\u2581"]
    trainee.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(SPECIALS) - 256, initial_alphabet=alphabet, limit_alphabet=len(alphabet), min_frequency=2, show_progress=False))
    learnt = json.loads(trainee.to_str())["model"]
    pieces = sorted(learnt["vocab"], key=learnt["vocab"].get)
    vocab = {}
    for piece in SPECIALS + [f"<0x{b:02X}>" for b in range(256)] + pieces:
        vocab[piece] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m) for m in learnt["merges"]], unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = trainee.normalizer
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIALS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, vocab[BOS])])
    return tokenizer


def render(messages):
    """Renders a whole conversation in the same way as CHAT_TEMPLATE."""
    return BOS + "".join(
        f"<|{m['role']}|>" + ("\n" if m["role"] == "assistant" else "") + m["content"] + EOS for m in messages)


def manual_pages(facts, rng, count):
    """Yields plain text for `complete`: one to three answers in a row, without roles."""
    answers = [a for f in facts.values() if not f.name.startswith(("oos", "social")) for a in f.answers]
    for _ in range(count):
        yield " ".join(rng.sample(answers, rng.choice((1, 1, 2, 3))))


def main():
    work = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200000
    work.mkdir(parents=True, exist_ok=True)
    rng = random.Random(SEED)
    facts = phrasing.load_facts(HERE / "facts")
    held_out = {json.loads(line)["q"].lower().strip("?.! ") for name in ("heldout.jsonl",)
                for line in (HERE / name).read_text().splitlines()}
    sampler = phrasing.Sampler(facts, rng)
    conversations, refused = [], set()
    while len(conversations) < count:
        messages = sampler.conversation()
        hits = {m["content"] for m in messages if m["role"] == "user" and m["content"].lower().strip("?.! ") in held_out}
        if hits:
            refused |= hits
        else:
            conversations.append(messages)
    pages = list(manual_pages(facts, rng, count // 25))
    if len(sys.argv) > 3:
        tokenizer = Tokenizer.from_file(sys.argv[3])
    else:
        tokenizer_text = [m["content"] for c in conversations[:20000] for m in c] + pages[:1000] + [a for f in facts.values() for a in f.answers] * 20
        # An answer follows a newline, so its first word has no leading U+2581. The vocabulary needs these words in that form too.
        tokenizer = train_tokenizer(tokenizer_text + ["\n" + t for t in tokenizer_text])
    tokenizer.save(str(work / "tokenizer.json"))

    texts = [render(c) for c in conversations] + [BOS + p + EOS for p in pages]
    assistant, eos, bos = (tokenizer.token_to_id(t) for t in ("<|assistant|>", EOS, BOS))
    ids, mask, offsets, last_answers = [], [], [0], []
    for start in range(0, len(texts), 10000):
        for encoding in tokenizer.encode_batch(texts[start:start + 10000], add_special_tokens=False):
            row = np.array(encoding.ids, np.uint16)
            # 1 for the tokens that the model must learn to generate: an answer with its EOS token, or a whole page.
            learn = np.zeros(len(row), np.uint8)
            if assistant in row:
                inside = 0
                for i, token in enumerate(row):
                    learn[i] = inside > 2
                    inside = inside + 1 if inside else 0
                    if token == assistant:
                        inside = 1
                    elif token == eos:
                        inside = 0
            else:
                learn[1:] = 1
            places = np.flatnonzero(row == assistant)
            last_answers.append(int(places[-1]) + 3 if len(places) else 0)
            ids.append(row)
            mask.append(learn)
            offsets.append(offsets[-1] + len(row))
    np.savez(work / "corpus.npz", ids=np.concatenate(ids), mask=np.concatenate(mask), offsets=np.array(offsets),
             last_answers=np.array(last_answers))
    print(f"{len(facts)} facts, {sum(len(f.phrasings) for f in facts.values())} phrasings, {len(texts)} texts, {offsets[-1]} tokens, "
          f"longest {max(len(i) for i in ids)}, vocabulary {tokenizer.get_vocab_size()}, held-out questions that were left out: {sorted(refused)}")
    with open(work / "sample.txt", "w") as out:
        out.write("\n".join(texts[:300]))


if __name__ == "__main__":
    main()
