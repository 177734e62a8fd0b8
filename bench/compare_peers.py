#!/usr/bin/env python3
"""Compares vllmcli with llama-bench and llama-batched-bench on the same GGUF file.

    bench/compare_peers.py MODEL.gguf [--rounds 3] [--threads 2] [--streams 8,16,32] [--prefill 512]
                           [--peer NAME=DIRECTORY[,OPTION...]]... [--option=OPTION]...
                           [--our-model OTHER.gguf] [--figures FILE.json]

The programs take turns, and machine_probe runs before each measurement. DIRECTORY contains a peer's programs, and the
peer's OPTIONs are passed to them, as in --peer 'ik=/opt/ik/bin,-rtr 1,-fa 1'. Without --peer, llama-bench and
llama-batched-bench are looked up on PATH, and skipped if they are missing.
--our-model gives vllmcli another file of the same model, for example to quantize it with --option=--quantization=int8.
--figures reads the figures of earlier calls with the same arguments from a file, and adds the new ones to it.
Prints medians in tokens/s, the ratio to the best peer, and vllmcli's share of the machine's limit. For prefill and
for several streams, the limit is two operations per weight and token, at the peak rate of vdpbf16ps (files with more
than 12 bits per weight) or vpdpbusd. For one stream, the limit is reading the file once per token, at the read
bandwidth. With --option the share is omitted, because vllmcli's weights may differ from the file's.
"""
import argparse
import csv
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")


def run(command, stderr=subprocess.PIPE):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: {(result.stderr or result.stdout).strip() or result.returncode}")
    return result.stdout


class Ours:
    name = "vllmcli"

    def __init__(self, model, threads, options):
        self.command = [os.path.join(BUILD, "vllmcli"), "bench", "latency", "-m", model, "--threads-per-rank", str(threads),
                        "--no-enable-prefix-caching", "--json", *options]

    def seconds(self, prompt, output, batch, iterations, warmup=1):
        text = run(self.command + ["--input-len", str(prompt), "--output-len", str(output), "--batch-size", str(batch),
                                   "--num-iters", str(iterations), "--num-iters-warmup", str(warmup),
                                   "--max-num-seqs", str(batch)])
        return json.loads(text)["percentiles"]["50"]

    def prefill(self, tokens):
        return tokens / self.seconds(tokens, 1, 1, 3 if tokens <= 512 else 1)

    def decode(self, tokens):
        return tokens / (self.seconds(8, tokens + 1, 1, 2) - self.seconds(8, 1, 1, 2))

    def streams(self, count, prompt, tokens):
        return count * tokens / (self.seconds(prompt, tokens + 1, count, 1, 0) - self.seconds(prompt, 1, count, 1, 0))


class Peer:
    def __init__(self, name, directory, model, threads, options):
        def find(program):
            return os.path.join(directory, program) if directory else shutil.which(program)
        self.name, self.model, self.threads, self.options = name, model, str(threads), options
        self.bench, self.batched = find("llama-bench"), find("llama-batched-bench")

    def llama_bench(self, prompt, tokens):
        text = run([self.bench, "-m", self.model, "-t", self.threads, "-p", str(prompt), "-n", str(tokens), "-r", "2", "-o", "csv",
                    *self.options])
        return float(list(csv.DictReader(io.StringIO(text[text.index("build_commit"):])))[0]["avg_ts"])

    def prefill(self, tokens):
        return self.llama_bench(tokens, 0)

    def decode(self, tokens):
        return self.llama_bench(0, tokens)

    def streams(self, count, prompt, tokens):
        if not self.batched or not os.path.exists(self.batched):
            return None
        # ik_llama.cpp's llama-batched-bench has switches where llama-bench has options with a value.
        options = re.sub(r"(-rtr|-thp) 1", r"\1", " ".join(self.options)).split()
        text = run([self.batched, "-m", self.model, "-t", self.threads, "-tb", self.threads, "-c", str(count * (prompt + tokens)), "-b",
                    "2048", "-npp", str(prompt), "-ntg", str(tokens), "-npl", str(count), *options], subprocess.STDOUT)
        row = re.search(rf"\|\s*{prompt}\s*\|\s*{tokens}\s*\|\s*{count}\s*\|(.*)", text).group(1)
        return float([cell for cell in row.split("|") if cell.strip()][4])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--streams", default="8,16,32")
    parser.add_argument("--prefill", default="512")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--option", action="append", default=[], help="option for vllmcli, as in --option=--kv-cache-dtype=int8")
    parser.add_argument("--our-model", help="file for vllmcli (default: MODEL)")
    parser.add_argument("--figures", help="file that keeps the figures")
    args = parser.parse_args()
    our_model = args.our_model or args.model

    peers = []
    for text in args.peer:
        name, _, rest = text.partition("=")
        directory, *options = rest.split(",")
        peers.append(Peer(name, directory, args.model, args.threads, [word for option in options for word in option.split()]))
    if not args.peer and shutil.which("llama-bench"):
        peers.append(Peer("llama.cpp", None, args.model, args.threads, []))
    runners = [Ours(our_model, args.threads, args.option), *peers]

    tasks = [(f"prefill {n}", lambda r, n=int(n): r.prefill(n)) for n in args.prefill.split(",") if n]
    tasks += [("decode, 1 stream", lambda r: r.decode(64))]
    tasks += [(f"decode, {n} streams", lambda r, n=int(n): r.streams(n, 128, 64)) for n in args.streams.split(",") if n]
    figures = {(task, runner.name): [] for task, _ in tasks for runner in runners}
    probes = {task: [] for task, _ in tasks}
    if args.figures and os.path.exists(args.figures):
        with open(args.figures) as file:
            for task, name, values in json.load(file):
                (probes[task] if name is None else figures[task, name]).extend(values)
    for _ in range(args.rounds):
        for task, measure in tasks:
            for runner in runners:
                probes[task].append(json.loads(run([os.path.join(BUILD, "bench", "machine_probe"), str(args.threads)])))
                value = measure(runner)
                if value is not None:
                    figures[task, runner.name].append(value)

    if args.figures:
        with open(args.figures, "w") as file:
            json.dump([[task, name, values] for (task, name), values in figures.items()] +
                      [[task, None, values] for task, values in probes.items()], file)

    size = os.path.getsize(our_model)
    shown = json.loads(run([os.path.join(BUILD, "vllmcli"), "show", "-m", our_model, "--json"]))
    weights = shown["parameters"]
    table = shown["vocab_size"] * shown["hidden_size"]
    # No token is multiplied by the embedding matrix. The LM head multiplies every generated token, but only the last
    # token of a prompt.
    in_layers = weights - (table if shown["tie_word_embeddings"] else 2 * table)
    instruction = "bfloat16" if size / weights > 1.5 else "int8"

    def limit(task, probe):
        if task == "decode, 1 stream":
            return probe["read"] / size
        return probe[instruction] / 2 / (in_layers if task.startswith("prefill") else in_layers + table)

    print(f"{args.model}: {size / 1e6:.0f} MB, {args.threads} threads, medians of {len(figures[tasks[0][0], 'vllmcli'])} rounds, tokens/s")
    print("| |", " | ".join(runner.name for runner in runners), "| ratio to best peer | % of limit | machine |")
    print("|---" * (len(runners) + 4) + "|")
    for task, _ in tasks:
        medians = [statistics.median(figures[task, r.name]) if figures[task, r.name] else None for r in runners]
        cells = ["-" if value is None else f"{value:.1f}" for value in medians]
        others = [value for value in medians[1:] if value is not None]
        ratio = f"{medians[0] / max(others):.2f}" if others else "-"
        probe = {key: statistics.median(p[key] for p in probes[task]) for key in ("read", "bfloat16", "int8")}
        share = "-" if args.option else f"{medians[0] / limit(task, probe) * 100:.0f} %"
        machine = f"read {probe['read'] / 1e9:.0f} GB/s, bf16 {probe['bfloat16'] / 1e9:.0f}, int8 {probe['int8'] / 1e9:.0f} Gop/s"
        print("|", task, "|", " | ".join(cells), "|", ratio, "|", share, "|", machine, "|")


if __name__ == "__main__":
    main()
