#!/usr/bin/env python3
"""Compares vllmcli with llama-bench and llama-batched-bench on the same GGUF file.

    bench/compare_peers.py MODEL.gguf [--rounds 3] [--threads 2] [--streams 1,8,16,32] [--prefill 512]
                           [--peer NAME=DIRECTORY[,OPTION...]]... [--option=OPTION]...
                           [--our-model OTHER.gguf] [--figures FILE.json] [--prompt 128] [--generate 64]

The programs take turns, and machine_probe runs before each round. DIRECTORY contains a peer's programs, and the
peer's OPTIONS are passed to them, as in --peer 'ik=/opt/ik/bin,-rtr 1,-fa 1'. Without --peer, llama-bench and
llama-batched-bench are looked up on PATH, and skipped if they are missing.
--our-model gives vllmcli another file of the same model, for example to quantize it with --option=--quantization=int8.
--prompt, --generate: tokens of each of several streams. One stream has a prompt of at most 8 tokens and generates 64.
--figures reads the figures of earlier calls from a file, and adds the new ones to it. bench/peers_table.py prints several
such files as one table.
Prints medians in tokens/s, the ratio to the best peer, and vllmcli's share of the bound (bench/gguf_bounds.py).
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

from gguf_bounds import Bounds

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")
WARM_PREFILL = 512  # tokens; longer prompts are timed without a run before


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
        few = tokens <= WARM_PREFILL
        return tokens / self.seconds(tokens, 1, 1, 3 if few else 1, 1 if few else 0)

    def decode(self, tokens):
        return tokens / (self.seconds(8, tokens + 1, 1, 2) - self.seconds(8, 1, 1, 2))

    def streams(self, count, prompt, tokens):
        runs = (3 if count <= 16 else 1, 1)  # the warm-up is the first to use the pages of the KV cache
        return count * tokens / (self.seconds(prompt, tokens + 1, count, *runs) - self.seconds(prompt, 1, count, *runs))


class Peer:
    def __init__(self, name, directory, model, threads, options):
        def find(program):
            return os.path.join(directory, program) if directory else shutil.which(program)
        self.name, self.model, self.threads, self.options = name, model, str(threads), options
        self.bench, self.batched = find("llama-bench"), find("llama-batched-bench")
        usage = subprocess.run([self.bench, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        self.no_warmup = ["--no-warmup"] if "--no-warmup" in usage else ["-w", "0"]

    def llama_bench(self, prompt, tokens):
        text = run([self.bench, "-m", self.model, "-t", self.threads, "-p", str(prompt), "-n", str(tokens), "-r", "1", "-o", "csv",
                    *(self.no_warmup if prompt > WARM_PREFILL else []), *self.options])
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
    parser.add_argument("--streams", default="1,8,16,32")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--prefill", default="512")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--option", action="append", default=[], help="option for vllmcli, as in --option=--kv-cache-dtype=int8")
    parser.add_argument("--our-model", help="file for vllmcli (default: MODEL)")
    parser.add_argument("--generate", type=int, default=64)
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

    tasks = [(f"prefill {n}", int(n), lambda r, n=int(n): r.prefill(n)) for n in args.prefill.split(",") if n]
    for count in [int(n) for n in args.streams.split(",") if n]:
        tasks += [(f"streams {count}", count, lambda r, n=count: r.decode(64) if n == 1 else r.streams(n, args.prompt, args.generate))]
    figures = {}  # of a task: {program: tokens per second in each round}
    if args.figures and os.path.exists(args.figures):
        with open(args.figures) as file:
            figures = json.load(file)
    quantization = [option.split("=")[1] for option in args.option if option.startswith("--quantization=")]
    bounds = Bounds(our_model, *quantization)
    for _ in range(args.rounds):
        limits = json.loads(run([os.path.join(BUILD, "bench", "machine_probe"), str(args.threads)]))
        for task, count, measure in tasks:
            of_task = figures.setdefault(task, {})
            bound = bounds.prefill(count, limits) if task.startswith("prefill") else bounds.decode(count, limits)
            of_task.setdefault("bound", []).append(float(f"{bound:.4g}"))
            for runner in runners:
                value = measure(runner)
                if value is not None:
                    of_task.setdefault(runner.name, []).append(float(f"{value:.4g}"))

    if args.figures:
        with open(args.figures, "w") as file:
            file.write(json.dumps(figures).replace("}, ", "},\n ") + "\n")

    num_rounds = max(len(of_task["bound"]) for of_task in figures.values())
    print(f"{our_model}: {args.threads} threads, medians of {num_rounds} rounds, tokens/s")
    print("| |", " | ".join(runner.name for runner in runners), "| ratio to best peer | bound | share of it |")
    print("|---" * (len(runners) + 4) + "|")
    for task, _, _ in tasks:
        medians = {name: statistics.median(values) for name, values in figures[task].items()}
        ours, bound = medians["vllmcli"], medians["bound"]
        cells = [f"{medians[runner.name]:.1f}" if runner.name in medians else "-" for runner in runners]
        others = [value for name, value in medians.items() if name not in ("vllmcli", "bound")]
        ratio = f"{ours / max(others):.2f}" if others else "-"
        print("|", task, "|", " | ".join(cells), "|", ratio, "|", f"{bound:.1f} | {ours / bound * 100:.0f} % |")


if __name__ == "__main__":
    main()
