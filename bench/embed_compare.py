#!/usr/bin/env python3
"""Compares vllmcli embed with sentence-transformers (torch), ONNX Runtime and OpenVINO on random weights in the shape of
all-MiniLM-L6-v2, or on the model in a directory of sentence-transformers.

    bench/embed_compare.py [--rounds 5] [--threads 2] [--texts 512] [--words 4,40] [--model DIRECTORY]

Needs the Python packages nncf, numpy, onnx, onnxruntime, openvino, sentence-transformers, tokenizers, torch and
transformers. The programs take turns. The time of vllmcli is that of all texts less that of one text, so that no
program's time includes loading the model. Prints the medians in texts per second, the median of each turn's ratio to
sentence-transformers, and the smallest cosine of a text's vector and that of sentence-transformers.

All peers get the texts sorted by length and padded in batches of 32, sentence-transformers' default. In int8, ONNX
Runtime has its dynamic quantization, and OpenVINO has NNCF's quantization of weights and activations, calibrated on 128
other texts.
"""
import argparse
import base64
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
                                         cls_token="[CLS]", sep_token="[SEP]", model_max_length=256,
                                         model_input_names=["input_ids", "token_type_ids", "attention_mask"],
                                         ).save_pretrained(plain)
    encoder = SentenceTransformer(modules=[modules.Transformer(plain), modules.Pooling(384, pooling_mode="mean"),
                                           modules.Normalize()], device="cpu")
    encoder.save(os.path.join(directory, "model"), create_model_card=False)
    return os.path.join(directory, "model")


class Peer:
    """A compiled model with sentence-transformers' tokenizer, mean pooling and normalization around it."""

    def __init__(self, tokenizer, run):
        self.tokenizer, self.run = tokenizer, run

    def batches(self, texts):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for begin in range(0, len(order), 32):
            indices = order[begin:begin + 32]
            batch = self.tokenizer([texts[i] for i in indices], padding=True, truncation=True, return_tensors="np")
            yield indices, {name: batch[name].astype(numpy.int64) for name in INPUTS}

    def encode(self, texts):
        vectors = numpy.zeros((len(texts), 384), numpy.float32)
        for indices, batch in self.batches(texts):
            hidden, mask = self.run(batch), batch["attention_mask"][:, :, None].astype(numpy.float32)
            mean = (hidden * mask).sum(1) / mask.sum(1)
            vectors[indices] = mean / numpy.linalg.norm(mean, axis=1, keepdims=True)
        return vectors


INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


class Hidden(torch.nn.Module):
    """The part of BERT that is exported: the hidden states of all tokens."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, *inputs):
        return self.bert(**dict(zip(INPUTS, inputs)))[0]


def make_peers(encoder, directory, calibration, threads):
    """ONNX Runtime and OpenVINO with the model of `encoder`, in float32 and int8."""
    import nncf
    import onnxruntime
    import openvino
    from onnxruntime.quantization import QuantType, quantize_dynamic

    bert, tokenizer = encoder[0].auto_model.eval(), encoder.tokenizer
    path, path_int8 = os.path.join(directory, "model.onnx"), os.path.join(directory, "int8.onnx")
    bert.set_attn_implementation("eager")
    example = tuple(torch.ones(2, 8, dtype=torch.int64) for _ in INPUTS)
    torch.onnx.export(Hidden(bert), example, path, input_names=INPUTS, output_names=["hidden"], dynamo=False, opset_version=17,
                      dynamic_axes={name: {0: "batch", 1: "length"} for name in [*INPUTS, "hidden"]})
    bert.set_attn_implementation("sdpa")
    quantize_dynamic(path, path_int8, weight_type=QuantType.QInt8, per_channel=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    peers = {}
    for name, file in (("onnxruntime float32", path), ("onnxruntime int8", path_int8)):
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        peers[name] = Peer(tokenizer, lambda batch, session=session: session.run(["hidden"], batch)[0])
    core = openvino.Core()
    plain = core.read_model(path)
    dataset = nncf.Dataset([batch for _, batch in Peer(tokenizer, None).batches(calibration)])
    quantized = nncf.quantize(plain, dataset, model_type=nncf.ModelType.TRANSFORMER)
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    for name, model in (("openvino", core.read_model(path)), ("openvino int8", quantized)):
        compiled = core.compile_model(model, "CPU", settings)
        peers[name] = Peer(tokenizer, lambda batch, compiled=compiled: compiled(batch)["hidden"])
    return peers


def embed(model, texts, threads, options):
    """Returns the seconds and the vectors."""
    begin = time.perf_counter()
    # The peers return arrays, so the format that is closest to an array.
    result = subprocess.run([PROGRAM, "embed", "-m", model, "--threads-per-rank", str(threads), "--encoding-format",
                             "base64", "--quiet", *options], input="\n".join(texts), text=True, check=True,
                            stdout=subprocess.PIPE)
    seconds = time.perf_counter() - begin
    vectors = [base64.b64decode(json.loads(line)["embedding"]) for line in result.stdout.splitlines()]
    return seconds, numpy.array([numpy.frombuffer(vector, dtype="<f4") for vector in vectors])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--texts", type=int, default=512)
    parser.add_argument("--words", default="4,40", help="the fewest and the most words of a text")
    parser.add_argument("--model", help="a model of sentence-transformers with mean pooling and 384 dimensions")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    fewest, most = (int(number) for number in arguments.words.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        model = arguments.model or make_model(temporary)
        torch_model = SentenceTransformer(model, device="cpu")
        words = [word for word in torch_model.tokenizer.get_vocab() if word.isalnum()]
        words.sort()
        rng = random.Random(1)
        texts = [" ".join(rng.choice(words) for _ in range(rng.randint(fewest, most)))
                 for _ in range(arguments.texts + 128)]
        calibration, texts = texts[:128], texts[128:]
        peers = {"sentence-transformers": torch_model, **make_peers(torch_model, temporary, calibration,
                                                                    arguments.threads)}
        variants = {"vllmcli float32": [], "vllmcli bfloat16": ["--dtype", "bfloat16"], "vllmcli int8": ["-q", "int8"]}
        rates, ratios, cosines = ({name: [] for name in [*peers, *variants]} for _ in range(3))
        for _ in range(arguments.rounds):
            for name in rates:
                if name in peers:
                    begin = time.perf_counter()
                    vectors = peers[name].encode(texts)
                    seconds = time.perf_counter() - begin
                else:
                    load, _ = embed(model, texts[:1], arguments.threads, variants[name])
                    seconds, vectors = embed(model, texts, arguments.threads, variants[name])
                    seconds -= load
                if name == "sentence-transformers":
                    expected, first_seconds = vectors, seconds
                rates[name].append(len(texts) / seconds)
                ratios[name].append(first_seconds / seconds)
                cosines[name] = float((vectors * expected).sum(1).min())
    for name in rates:
        print(f"{name:22} {statistics.median(rates[name]):5.0f} texts/s, {statistics.median(ratios[name]):.2f} times "
              f"sentence-transformers, smallest cosine {cosines[name]:.7f}")


if __name__ == "__main__":
    main()
