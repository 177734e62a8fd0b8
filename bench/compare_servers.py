#!/usr/bin/env python3
"""Compares the time of a whole job in vllmcli and on peers' servers (llama-server), with the same GGUF file.

    bench/compare_servers.py MODEL.gguf [--rounds 1] [--threads 2] [--job 128+128] [--job 192:64+64]
                             [--peer NAME=DIRECTORY[,OPTION...]]... [--option=OPTION]...

The programs take turns. A job is 48 requests, 16 at a time, each of [SHARED:]PROMPT+OUTPUT tokens. All prompts start
with the same SHARED tokens, followed by PROMPT different ones. DIRECTORY contains llama-server, and the peer's OPTIONs
are passed to it. A server first answers one request to warm up. It samples greedily and caches prompts (cache_prompt).
Its time is measured from the first request to the last answer.
Prints medians of total / generated tokens/s, and the ratio to the best peer.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VLLMCLI = os.path.join(ROOT, "build", "release", "vllmcli")
REQUESTS, CONCURRENCY = 48, 16


class Job:
    def __init__(self, text):
        match = re.fullmatch(r"(?:(\d+):)?(\d+)\+(\d+)", text)
        if not match:
            sys.exit(f"--job {text}: expected [SHARED:]PROMPT+OUTPUT")
        self.text = text
        self.shared, self.prompt, self.output = (int(group or 0) for group in match.groups())

    def tokens_per_second(self, seconds):
        return REQUESTS * (self.shared + self.prompt + self.output) / seconds, REQUESTS * self.output / seconds


class Ours:
    name = "vllmcli"

    def __init__(self, model, threads, options):
        self.command = [VLLMCLI, "bench", "throughput", "-m", model, "--threads-per-rank", str(threads), "--json", "--num-prompts",
                        str(REQUESTS), "--max-num-seqs", str(CONCURRENCY), *options]

    def seconds(self, job):
        command = self.command + ["--prefix-len", str(job.shared), "--input-len", str(job.prompt), "--output-len", str(job.output)]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}: {result.stderr.strip()}")
        return json.loads(result.stdout)["elapsed_time"]


class Peer:
    def __init__(self, name, directory, model, threads, options):
        self.name = name
        self.command = [os.path.join(directory, "llama-server"), "-m", model, "-t", str(threads), "-tb", str(threads), "-np",
                        str(CONCURRENCY), *options]

    def seconds(self, job):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # Twice what the requests need, because servers lose KV cells to fragmentation.
        context = 2 * CONCURRENCY * (job.shared + job.prompt + job.output)
        server = subprocess.Popen(self.command + ["-c", str(context), "--host", "127.0.0.1", "--port", str(port)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait(server, f"http://127.0.0.1:{port}/health")
            numbers = random.Random(1)
            draw = lambda count: [numbers.randrange(1000, 30000) for _ in range(count)]
            shared = draw(job.shared)
            prompts = [shared + draw(job.prompt) for _ in range(REQUESTS)]
            url = f"http://127.0.0.1:{port}/completion"
            self.complete(url, draw(8), 2)
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
                list(pool.map(lambda prompt: self.complete(url, prompt, job.output), prompts))
            return time.monotonic() - begin
        finally:
            server.terminate()
            server.wait()

    def wait(self, server, url):
        for _ in range(600):
            if server.poll() is not None:
                sys.exit(f"{' '.join(server.args)}: exited with status {server.returncode}")
            try:
                urllib.request.urlopen(url, timeout=5).read()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        sys.exit(f"{self.name}: the server does not answer (120 s)")

    def complete(self, url, prompt, tokens):
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": True, "cache_prompt": True}
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            answer = json.loads(urllib.request.urlopen(request, timeout=1200).read())
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            # Random weights produce bytes that are not UTF-8. A server that rejects such an answer has generated all of
            # its tokens.
            if "UTF-8" in text:
                return
            sys.exit(f"{self.name}: {error}: {text[:300]}")
        generated = answer.get("tokens_predicted")
        if generated != tokens:
            sys.exit(f"{self.name}: generated {generated} tokens instead of {tokens}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--job", action="append", default=[])
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--option", action="append", default=[], help="option for vllmcli, as in --option=--kv-cache-dtype=int8")
    args = parser.parse_args()

    runners = [Ours(args.model, args.threads, args.option)]
    for text in args.peer:
        name, _, rest = text.partition("=")
        directory, *options = rest.split(",")
        runners.append(Peer(name, directory, args.model, args.threads, [word for option in options for word in option.split()]))
    jobs = [Job(text) for text in args.job or ["128+128", "192:64+64"]]
    seconds = {(job.text, runner.name): [] for job in jobs for runner in runners}
    for _ in range(args.rounds):
        for job in jobs:
            for runner in runners:
                seconds[job.text, runner.name].append(runner.seconds(job))
                print(f"{job.text} {runner.name}: {seconds[job.text, runner.name][-1]:.1f} s", file=sys.stderr)

    print(f"{args.model}: {args.threads} threads, {REQUESTS} requests, {CONCURRENCY} at a time, medians of {args.rounds} rounds, tokens/s total / generated")
    print("| |", " | ".join(runner.name for runner in runners), "| ratio to best peer |")
    print("|---" * (len(runners) + 2) + "|")
    for job in jobs:
        medians = [statistics.median(seconds[job.text, runner.name]) for runner in runners]
        cells = ["{:.0f} / {:.0f}".format(*job.tokens_per_second(value)) for value in medians]
        ratio = f"{min(medians[1:]) / medians[0]:.2f}" if len(medians) > 1 else "-"
        print("|", job.text, "|", " | ".join(cells), "|", ratio, "|")


if __name__ == "__main__":
    main()
