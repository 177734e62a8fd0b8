#!/usr/bin/env python3
"""Compares vllmcli embed with sentence-transformers (torch) on random weights in the shape of all-MiniLM-L6-v2.

    bench/embed_compare.py [--rounds 5] [--threads 2] [--texts 512] [--words 4,40] [--directory DIRECTORY]

Needs the Python packages numpy, sentence-transformers, tokenizers, torch and transformers. The programs take turns. The
time of vllmcli is that of all texts less that of one text, so that neither program's time includes loading the model.
Prints the medians in texts per second, the ratio of each pair of turns, and the smallest cosine of a text's two
vectors. sentence-transformers sorts the texts by length and pads them in batches of 32, its default.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import numpy
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build" / "release" / "vllmcli"


def make_model(directory):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [f"w{i}" for i in range(30518)]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    torch.manual_seed(0)
    model = transformers.BertModel(transformers.BertConfig(
        vocab_size=len(words), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        initializer_range=0.05), add_pooling_layer=False)
    plain = os.path.join(directory, "plain")
    model.save_pretrained(plain)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]",
                                         cls_token="[CLS]", sep_token="[SEP]", model_max_length=256).save_pretrained(plain)
    encoder = SentenceTransformer(modules=[modules.Transformer(plain), modules.Pooling(384, pooling_mode="mean"),
                                           modules.Normalize()], device="cpu")
    encoder.save(os.path.join(directory, "model"), create_model_card=False)
    return os.path.join(directory, "model")


def embed(model, texts, threads, options):
    """Returns the seconds and the vectors."""
    begin = time.perf_counter()
    result = subprocess.run([PROGRAM, "embed", "-m", model, "--threads-per-rank", str(threads), "--encoding-format",
                             "float", "--quiet", *options], input="\n".join(texts), text=True, check=True,
                            stdout=subprocess.PIPE)
    seconds = time.perf_counter() - begin
    return seconds, numpy.array([json.loads(line)["embedding"] for line in result.stdout.splitlines()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--words", default="4,40", help="the fewest and the most words of a text")
    parser.add_argument("--directory")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    fewest, most = (int(number) for number in arguments.words.split(","))
    rng = random.Random(1)
    texts = [" ".join(f"w{rng.randrange(30518)}" for _ in range(rng.randint(fewest, most)))
             for _ in range(arguments.texts)]
    with tempfile.TemporaryDirectory() as temporary:
        model = make_model(arguments.directory or temporary)
        peer = SentenceTransformer(model, device="cpu")
        variants = {"float32": [], "int8": ["-q", "int8"]}
        rates, ratios, cosines = {name: [] for name in ["peer", *variants]}, {name: [] for name in variants}, {}
        for _ in range(arguments.rounds):
            begin = time.perf_counter()
            expected = peer.encode(texts)
            peer_seconds = time.perf_counter() - begin
            rates["peer"].append(len(texts) / peer_seconds)
            for name, options in variants.items():
                load, _ = embed(model, texts[:1], arguments.threads, options)
                seconds, vectors = embed(model, texts, arguments.threads, options)
                rates[name].append(len(texts) / (seconds - load))
                ratios[name].append(peer_seconds / (seconds - load))
                cosines[name] = float((vectors * expected).sum(1).min())
    print(f"sentence-transformers  {statistics.median(rates['peer']):.0f} texts/s")
    for name in variants:
        print(f"vllmcli {name:8}       {statistics.median(rates[name]):.0f} texts/s, "
              f"{statistics.median(ratios[name]):.2f} times as fast, smallest cosine {cosines[name]:.7f}")


if __name__ == "__main__":
    main()
