#include "app/cli/flag.h"

#include <string>

namespace vllm {
namespace {

constexpr uint32_t Bits(auto... commands) { return (static_cast<uint32_t>(commands) | ...); }

using enum Command;
using enum ValueKind;
using enum FlagGroup;

constexpr uint32_t kGenerate = Bits(kChat, kRun, kComplete, kBatch);
constexpr uint32_t kEngines = kGenerate | Bits(kBench);
constexpr uint32_t kOnce = Bits(kRun, kComplete);
constexpr uint32_t kWithModel = kEngines | Bits(kTokenize, kRender, kShow);
constexpr uint32_t kTemplated = Bits(kChat, kRun, kBatch, kRender);
constexpr uint32_t kJson = kOnce | Bits(kTokenize, kRender, kShow, kBench, kModels, kConfig);
constexpr uint32_t kEvery = 0xFFFFFFFF;

constexpr Flag kFlags[] = {
    // The model.
    {"model", 'm', kText, "MODEL", "", "", kModel, kWithModel | Bits(kConfig), false, true,
     "a directory in Hugging Face layout, a .gguf file, or the name of a repository in the Hugging Face cache; else "
     "$VLLMCLI_MODEL, the configuration file, the model that ships"},
    {"load-format", 0, kChoice, "FORMAT", "auto|safetensors|gguf|dummy", "auto", kModel, kWithModel, false, true,
     "gguf: the directory's .gguf file, also beside a config.json; dummy: random weights of the shapes config.json "
     "asks "
     "for"},
    {"dtype", 0, kChoice, "TYPE", "auto|float32|float16|bfloat16", "auto", kModel, kEngines, false, true,
     "type of weights, and of the KV cache unless --kv-cache-dtype says otherwise; auto is the checkpoint's own; with "
     "float32 the inputs of layers that a checkpoint has quantized are not rounded to 8 bits"},
    {"quantization", 'q', kChoice, "METHOD", "none|int8|int4", "none", kModel, kEngines, false, true,
     "quantize the weights of a model of plain numbers while loading: 8 or 4 bits each"},
    {"packed-cache-size", 0, kSize, "SIZE", "", "16Gi", kModel, kEngines, false, true,
     "most disk space for packed weights, which are kept in $XDG_CACHE_HOME/vllmcli/packed so that the next start need "
     "not pack them again; 0: keep none"},
    {"max-model-len", 0, kInteger, "N", "", "", kModel, kEngines, false, true,
     "longest prompt and output together, in tokens; default: the model's own"},

    // The prompt.
    {"system", 0, kText, "TEXT", "", "", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "system message in front of the conversation"},
    {"chat-template", 0, kPath, "FILE", "", "", kPrompt, kTemplated, false, true,
     "use this Jinja template instead of the model's"},
    {"template-var", 0, kText, "NAME=VALUE", "", "", kPrompt, kTemplated, true, true,
     "a variable for the chat template, such as enable_thinking=false; VALUE is JSON, or else text"},
    {"chat", 0, kNegatable, "", "", "", kPrompt, Bits(kBatch), false, false,
     "take a text for one user message and answer it through the chat template; default: lines of .txt, .csv and .tsv "
     "where the model has a template, {\"prompt\"} rows not"},
    {"prompt-ids", 0, kIds, "IDS", "", "", kPrompt, Bits(kComplete), false, false,
     "the prompt as token ids, 1,2,3, instead of text"},
    {"now", 0, kText, "DATE", "", "", kPrompt, kTemplated, false, false,
     "what strftime_now of a template takes for today: YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS"},

    // Sampling: vLLM's SamplingParams.
    {"max-tokens", 'n', kInteger, "N", "", "", kSampling, kGenerate, false, true,
     "most tokens to generate; default: the model's max_new_tokens, else what fits into the context"},
    {"generation-config", 0, kChoice, "SOURCE", "auto|vllm", "auto", kSampling, kGenerate | Bits(kShow), false, true,
     "where sampling defaults come from; auto: generation_config.json or the GGUF file's general.sampling keys, and "
     "llama.cpp's values when these name none; vllm: vLLM's neutral values (temperature 1, no top-k, top-p or min-p), "
     "whatever the model's files say"},
    {"temperature", 't', kNumber, "T", "", "the model's, else 0.8", kSampling, kGenerate, false, true,
     "randomness, 0 to 2; 0 always takes the most probable token"},
    {"top-p", 0, kNumber, "P", "", "the model's, else 0.95", kSampling, kGenerate, false, true,
     "keep the most probable tokens whose probabilities add up to P; 1: all"},
    {"top-k", 0, kInteger, "K", "", "the model's, else 40", kSampling, kGenerate, false, true,
     "keep the K most probable tokens; 0: all"},
    {"min-p", 0, kNumber, "P", "", "the model's, else 0.05", kSampling, kGenerate, false, true,
     "drop tokens less probable than P times the best one; 0: none"},
    {"presence-penalty", 0, kNumber, "V", "", "0", kSampling, kGenerate, false, true,
     "lower tokens that occur in the output, -2 to 2"},
    {"frequency-penalty", 0, kNumber, "V", "", "0", kSampling, kGenerate, false, true,
     "lower tokens by how often they occur in the output, -2 to 2"},
    {"repetition-penalty", 0, kNumber, "V", "", "the model's, else 1", kSampling, kGenerate, false, true,
     "divide the score of tokens that occur in prompt or output"},
    {"stop", 0, kText, "TEXT", "", "", kSampling, kGenerate, true, true,
     "end the answer before this text; up to 16 of up to 256 bytes"},
    {"stop-token-ids", 0, kIds, "IDS", "", "", kSampling, kGenerate, true, true, "end the answer at these token ids"},
    {"ignore-eos", 0, kSwitch, "", "", "", kSampling, kGenerate, false, true, "go on after the end-of-text token"},
    {"min-tokens", 0, kInteger, "N", "", "0", kSampling, kGenerate, false, true,
     "no end-of-text or stop token before N tokens"},
    {"n", 0, kInteger, "N", "", "1", kSampling, kEngines & ~Bits(kChat), false, true,
     "number of answers to the same prompt, 1 to 128"},
    {"logprobs", 0, kInteger, "K", "", "", kSampling, kGenerate & ~Bits(kChat), false, true,
     "log-probabilities of each output token and of the K most probable ones; shown with JSON; -1: all"},
    {"prompt-logprobs", 0, kInteger, "K", "", "", kSampling, kGenerate & ~Bits(kChat), false, true,
     "the same for the tokens of the prompt"},
    {"logit-bias", 0, kBias, "ID=V", "", "", kSampling, kGenerate, true, true,
     "add V, -100 to 100, to the score of a token; up to 1024"},
    {"allowed-token-ids", 0, kIds, "IDS", "", "", kSampling, kGenerate, true, true, "generate only these token ids"},
    {"bad-words", 0, kText, "TEXT", "", "", kSampling, kGenerate, true, true, "never generate this text; up to 1024"},
    {"seed", 0, kUnsigned, "N", "", "", kSampling, kEngines, false, true,
     "make random sampling repeatable; chat, run and complete take a new seed each time by default, batch and bench 0"},
    {"include-stop-str-in-output", 0, kSwitch, "", "", "", kSampling, kGenerate, false, true,
     "show the stop text that ended the answer"},
    {"skip-special-tokens", 0, kNegatable, "", "", "true", kSampling, kGenerate | Bits(kTokenize), false, true,
     "leave special tokens out of the text; tokenize --decode shows them unless this is given"},

    // What comes out.
    {"json", 0, kSwitch, "", "", "", kOutput, kJson, false, false, "print one JSON object or array"},
    {"stream-json", 0, kSwitch, "", "", "", kOutput, kOnce, false, false,
     "print one JSON object a piece of the answer"},
    {"stats", 0, kSwitch, "", "", "", kOutput, kGenerate, false, true,
     "print time to first token, tokens/s and counts to standard error"},
    {"quiet", 0, kSwitch, "", "", "", kOutput, kEngines, false, true,
     "no notes, status lines, progress or summaries; errors, warnings and what --stats prints stay"},
    {"decode", 0, kSwitch, "", "", "", kOutput, Bits(kTokenize), false, false, "token ids in, text out"},
    {"count", 0, kSwitch, "", "", "", kOutput, Bits(kTokenize), false, false, "print only the number of tokens"},
    {"add-special-tokens", 0, kNegatable, "", "", "true", kOutput, Bits(kTokenize), false, false,
     "add what the tokenizer puts around a text, such as BOS"},
    {"jsonl", 0, kSwitch, "", "", "", kOutput, Bits(kTokenize, kRender), false, false,
     "standard input or the file has one JSON value a line, and so has the output"},

    // batch.
    {"output", 'o', kPath, "FILE", "", "", kBatchRun, Bits(kBatch), false, false,
     "write here instead of to standard output"},
    {"overwrite", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false, "replace an output file that exists"},
    {"input-format", 0, kChoice, "FORMAT", "txt|jsonl|csv|tsv", "", kBatchRun, Bits(kBatch), false, false,
     "format of INPUT; default: by its ending, jsonl for -"},
    {"template", 0, kText, "TEXT", "", "", kBatchRun, Bits(kBatch), false, false,
     "prompt made from a row of .csv or .tsv: 'Translate: {column}'; {{ and }} are braces"},
    {"format", 0, kChoice, "FORMAT", "jsonl|text", "jsonl", kBatchRun, Bits(kBatch), false, false,
     "text: the texts alone, one answer after another"},
    {"ordered", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false, "write rows in the order of the input"},
    {"check", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "check every row, print the errors and run nothing"},

    // bench.
    {"input-len", 0, kInteger, "N", "", "32", kBenchRun, Bits(kBench), false, false, "tokens of each prompt"},
    {"prefix-len", 0, kInteger, "N", "", "0", kBenchRun, Bits(kBench), false, false,
     "tokens in front of each prompt that all share"},
    {"output-len", 0, kInteger, "N", "", "128", kBenchRun, Bits(kBench), false, false,
     "tokens to generate for each prompt"},
    {"batch-size", 0, kInteger, "N", "", "8", kBenchRun, Bits(kBench), false, false, "latency: prompts in the batch"},
    {"num-iters-warmup", 0, kInteger, "N", "", "3", kBenchRun, Bits(kBench), false, false,
     "latency: runs before measuring"},
    {"num-iters", 0, kInteger, "N", "", "10", kBenchRun, Bits(kBench), false, false, "latency: runs measured"},
    {"num-prompts", 0, kInteger, "N", "", "100", kBenchRun, Bits(kBench), false, false,
     "throughput: number of requests"},
    {"output-json", 0, kPath, "FILE", "", "", kBenchRun, Bits(kBench), false, false,
     "also write the results to a file as JSON"},
    {"compare", 0, kPath, "FILE", "", "", kBenchRun, Bits(kBench), false, false,
     "print each figure beside that of an earlier run's --output-json"},

    // The engine: vLLM's engine arguments.
    {"tensor-parallel-size", 0, kInteger, "N", "", "1", kEngine, kEngines, false, true,
     "split the model over N ranks; -tp is the same"},
    {"threads-per-rank", 0, kInteger, "N", "", "0", kEngine, kEngines, false, true,
     "threads of each rank; 0: the cores this process may use, divided by the ranks"},
    {"max-num-seqs", 0, kInteger, "N", "", "128", kEngine, kEngines, false, true, "most requests in one step"},
    {"max-num-batched-tokens", 0, kInteger, "N", "", "2048", kEngine, kEngines, false, true, "most tokens in one step"},
    {"long-prefill-token-threshold", 0, kInteger, "N", "", "0", kEngine, kEngines, false, true,
     "most tokens of one prompt in one step; 0: no limit"},
    {"block-size", 0, kInteger, "N", "", "16", kEngine, kEngines, false, true, "tokens of a KV cache block"},
    {"kv-cache-dtype", 0, kChoice, "TYPE", "auto|float32|bfloat16|float16|int8", "auto", kEngine,
     kEngines | Bits(kShow), false, true,
     "type of the KV cache; auto is that of the weights, bfloat16 instead of float16 where they are quantized; int8 "
     "has a scale for each token and head"},
    {"kv-cache-memory", 0, kSize, "SIZE", "", "", kEngine, kEngines, false, true,
     "memory for the KV cache (K, M, G, Ki, Mi, Gi); default: from what is free"},
    {"num-kv-blocks", 0, kInteger, "N", "", "", kEngine, kEngines, false, true, "number of KV cache blocks, instead"},
    {"enable-prefix-caching", 0, kNegatable, "", "", "true", kEngine, kEngines, false, true,
     "compute a prefix that requests share once"},
    {"enable-chunked-prefill", 0, kNegatable, "", "", "true", kEngine, kEngines, false, true,
     "compute a long prompt in several steps"},
    {"scheduling-policy", 0, kChoice, "POLICY", "fcfs|priority", "fcfs", kEngine, kEngines, false, true,
     "which waiting request runs next"},
    {"max-logprobs", 0, kInteger, "N", "", "20", kEngine, kEngines, false, true,
     "largest K of --logprobs and --prompt-logprobs; -1: no limit"},
    {"max-output-memory", 0, kSize, "SIZE", "", "", kEngine, kEngines, false, true,
     "memory for tokens and logprobs of requests that are not finished; a request that may need more is refused, one "
     "that fits later waits; default: an eighth of what is free beside the KV cache"},
    {"linear-backend", 0, kChoice, "NAME", "native|openblas", "native", kEngine, kEngines, false, true,
     "openblas: results may depend on what else is in the batch"},
    {"isa", 0, kChoice, "NAME", "auto|generic|avx2|avx2_vnni|avx512|avx512_bf16|neon|neon_dotprod", "auto", kEngine,
     kEngines, false, true,
     "instruction set of the kernels; auto is $VLLMCLI_ISA, else the best that the machine runs"},

    // All commands.
    {"config", 0, kPath, "FILE", "", "", kGeneral, kEvery, false, false,
     "read this configuration file instead of $XDG_CONFIG_HOME/vllmcli/config.toml"},
    {"help", 'h', kSwitch, "", "", "", kGeneral, kEvery, false, false, "print this help"},
};

}  // namespace

std::span<const Flag> FlagTable() { return kFlags; }

const Flag* FindFlag(std::string_view name) {
  std::string dashed(name);
  for (char& c : dashed) {
    if (c == '_') c = '-';
  }
  for (const Flag& flag : kFlags) {
    if (flag.name == dashed) return &flag;
  }
  return nullptr;
}

std::string_view TitleOf(FlagGroup group) {
  switch (group) {
    case kModel:
      return "Model";
    case kPrompt:
      return "Prompt";
    case kSampling:
      return "Sampling";
    case kOutput:
      return "Output";
    case kBatchRun:
      return "Batch";
    case kBenchRun:
      return "Benchmark";
    case kEngine:
      return "Engine";
    case kGeneral:
      return "General";
  }
  return "";
}

}  // namespace vllm
