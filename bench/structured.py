#!/usr/bin/env python3
"""Compares structured output with llguidance and xgrammar: the same JSON Schemas, texts and tokenizer.

    python3 -m venv /tmp/peers
    /tmp/peers/bin/pip install --no-deps llguidance==1.9.1 xgrammar==0.2.8 apache-tvm-ffi==0.1.15.post2 tokenizers==0.23.3 \
        numpy==2.4.6 pydantic==2.14.4 pydantic-core==2.50.5 annotated-types typing-extensions typing-inspection huggingface-hub
    /tmp/peers/bin/python bench/structured.py --tokenizer DIRECTORY --data DIRECTORY [--schemas 48]

--tokenizer is a directory with the tokenizer.json of a byte-level BPE, such as that of Qwen2.5. --data is the directory
maskbench/data of https://github.com/guidance-ai/jsonschemabench. The script takes every n-th of its schemas and the
instances that are valid, written without spaces, with keys in the order of the instance. All three libraries are asked
for JSON without spaces. It prints the time from the text of a schema to its first mask, the time per mask (each mask
before a token of a text, copied to the caller's buffer), and the memory that the process needs for each schema, for the
schemas that all libraries accept. Times are processor times of one thread. Each library runs in its own process.

xgrammar imports torch and transformers, which take gigabytes, only for the types of arguments. The script puts
stand-ins in their places: masks are filled in numpy arrays.
"""
import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import types

MAX_TOKENS_PER_SCHEMA = 1000


def rss_bytes():
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def now():
    return time.thread_time_ns() / 1000


class LLGuidance:
    def __init__(self, path):
        import llguidance
        import llguidance.numpy

        self.lib = llguidance
        self.tokenizer = llguidance.LLTokenizer(path)
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)
        self.fill = llguidance.numpy.fill_next_token_bitmask

    def compile(self, schema):
        overrides = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        grammar = self.lib.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=overrides)
        matcher = self.lib.LLMatcher(self.tokenizer, grammar)
        if matcher.get_error():
            raise ValueError(matcher.get_error())
        return matcher

    def matcher(self, compiled):
        return compiled.deep_copy()

    def fill_mask(self, matcher):
        self.fill(matcher, self.mask, 0)

    def accept(self, matcher, token):
        return matcher.consume_token(token)

    def may_end(self, matcher):
        return matcher.is_accepting()


class StandIn(types.ModuleType):
    """A module whose attributes are types that nothing uses."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(self, name, value)
        return value


class XGrammar:
    def __init__(self, path):
        import numpy

        for name in ("torch", "transformers"):
            sys.modules[name] = StandIn(name)
        sys.modules["torch"].cuda = types.SimpleNamespace(is_available=lambda: False)
        import xgrammar
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(path)
        vocab = [""] * tokenizer.get_vocab_size(with_added_tokens=True)
        for token, token_id in tokenizer.get_vocab(with_added_tokens=True).items():
            vocab[token_id] = token
        stop = [tokenizer.token_to_id("<|endoftext|>")]
        self.lib = xgrammar
        info = xgrammar.TokenizerInfo(vocab, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=stop)
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = numpy.full((1, (info.vocab_size + 31) // 32), -1, dtype=numpy.int32)

    def compile(self, schema):
        return self.compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(",", ":"), strict_mode=False)

    def matcher(self, compiled):
        return self.lib.GrammarMatcher(compiled, terminate_without_stop_token=True)

    def fill_mask(self, matcher):
        matcher.fill_next_token_bitmask(self.mask, 0)

    def accept(self, matcher, token):
        return matcher.accept_token(token)

    def may_end(self, matcher):
        return matcher.is_terminated()


def measure_peer(peer, row, kept):
    begin = now()
    try:
        compiled = peer.compile(row["schema"])
        peer.fill_mask(peer.matcher(compiled))
    except Exception as error:  # each library has its own types
        return {"error": str(error)}
    result = {"first_mask_us": now() - begin, "mask_us": [], "allowed": []}
    for tokens in row["tokens"]:
        matcher = peer.matcher(compiled)
        allowed = True
        for token in tokens:
            begin = now()
            peer.fill_mask(matcher)
            result["mask_us"].append(now() - begin)
            allowed = peer.accept(matcher, token)
            if not allowed:
                break
        result["allowed"].append(bool(allowed and peer.may_end(matcher)))
        kept.append(matcher)
    kept.append(compiled)
    return result


def run_peer(name, tokenizer, path):
    peer = {"llguidance": LLGuidance, "xgrammar": XGrammar}[name](tokenizer)
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    kept = []
    peer.fill_mask(peer.matcher(peer.compile({"const": 1})))  # what the first use initializes
    before = rss_bytes()
    for row in rows:
        print(json.dumps(measure_peer(peer, row, kept)))
    print(json.dumps({"rss_bytes": rss_bytes() - before}))


def choose_rows(data, num_schemas, tokenizer_path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_path)
    names = sorted(os.listdir(data))
    step = max(1, len(names) // num_schemas)
    rows = []
    for name in names[step // 2::step]:
        with open(os.path.join(data, name)) as file:
            item = json.load(file)
        tokens = []
        num_tokens = 0
        for test in item["tests"]:
            if not test["valid"]:
                continue
            text = json.dumps(test["data"], separators=(",", ":"), ensure_ascii=False)
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            num_tokens += len(ids)
            if num_tokens <= MAX_TOKENS_PER_SCHEMA:
                tokens.append(ids)
        if tokens:
            rows.append({"name": name, "schema": item["schema"], "tokens": tokens})
    return rows


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--data")
    parser.add_argument("--schemas", type=int, default=48)
    parser.add_argument("--ours", default="build/release/bench/structured_schemas")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    args = parser.parse_args()
    tokenizer_path = os.path.join(args.tokenizer, "tokenizer.json")
    if args.peer:
        return run_peer(args.peer, tokenizer_path, args.rows)

    rows = choose_rows(args.data, args.schemas, tokenizer_path)
    results = {}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
        file.flush()
        own = [sys.executable, __file__, "--tokenizer", args.tokenizer, "--rows", file.name, "--peer"]
        for name, command in (("vllmcli", [args.ours, args.tokenizer, file.name]), ("llguidance", own + ["llguidance"]),
                              ("xgrammar", own + ["xgrammar"])):
            output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
            results[name] = [json.loads(line) for line in output]
    # Schemas that all accept, with the texts that all allow, so that all have computed the same masks.
    common = [i for i in range(len(rows)) if all("error" not in r[i] and all(r[i]["allowed"]) for r in results.values())]
    print(f"load average {os.getloadavg()[0]:.1f}; {len(rows)} schemas, of which all libraries accept {len(common)} "
          "and allow their valid instances")
    figures = {}
    for name, result in results.items():
        num_errors = sum("error" in r for r in result[:-1])
        num_wrong = sum("error" not in r and not all(r["allowed"]) for r in result[:-1])
        first = [result[i]["first_mask_us"] for i in common]
        masks = [us for i in common for us in result[i]["mask_us"]]
        kib = result[-1]["rss_bytes"] / max(1, len(rows) - num_errors) / 1024
        figures[name] = [quantile(first, 0.5), quantile(first, 0.99), quantile(masks, 0.5), quantile(masks, 0.99),
                         max(masks), sum(masks) / len(masks), kib]
        print(f"{name}: rejects {num_errors} schemas, refuses a valid instance of {num_wrong}; {len(masks)} masks")
    labels = ["first mask, median us", "first mask, p99 us", "mask, median us", "mask, p99 us", "mask, max us",
              "mask, mean us", "memory per schema, KiB"]
    sizes = [r["memory_bytes"] / 1024 for r in results["vllmcli"][:-1] if "error" not in r]
    print(f"vllmcli: a grammar counts {quantile(sizes, 0.5):,.0f} KiB of memory in the median, masks included")
    print("| |" + "|".join(figures) + "|" + "|".join(f"vllmcli / {name}" for name in list(figures)[1:]) + "|")
    print("|---" * (2 * len(figures)) + "|")
    for i, label in enumerate(labels):
        ours = figures["vllmcli"][i]
        cells = [f"{f[i]:,.1f}" for f in figures.values()]
        cells += [f"{ours / figures[name][i]:.2f}" for name in list(figures)[1:]]
        print(f"| {label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
