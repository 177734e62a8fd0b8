#include "app/cli/flag.h"

#include <string>

#include "app/cli/speculative_setting.h"

namespace vllm::app {
namespace {

constexpr uint32_t Bits(auto... commands) { return (static_cast<uint32_t>(commands) | ...); }

using enum Command;
using enum ValueKind;
using enum FlagGroup;

constexpr uint32_t kGenerate = Bits(kChat, kRun, kComplete, kBatch);
constexpr uint32_t kSamplers = kGenerate | Bits(kBench);
constexpr uint32_t kPoolers = Bits(kEmbed, kScore, kRerank);
constexpr uint32_t kEngines = kSamplers | kPoolers | Bits(kPerplexity);
constexpr uint32_t kOnce = Bits(kRun, kComplete);
constexpr uint32_t kWithModel = kEngines | Bits(kTokenize, kRender, kShow);
constexpr uint32_t kTemplated = Bits(kChat, kRun, kBatch, kRender);
constexpr uint32_t kJson = kOnce | Bits(kBatch, kTokenize, kRender, kShow, kBench, kModels, kConfig, kChats, kTop,
                                        kTrace, kPresets, kPull, kCache, kPerplexity);
constexpr uint32_t kEvery = 0xFFFFFFFF;

constexpr Flag kFlags[] = {
    // Model.
    {"model", 'm', kText, "MODEL", "", "", kModel, kWithModel | Bits(kConfig), false, true,
     "Hugging Face model directory, .gguf file, repository such as OWNER/NAME or OWNER/NAME:Q4_K_M, or alias (see "
     "vllmcli models); default: $VLLMCLI_MODEL, then the configuration file, then the bundled model"},
    {"load-format", 0, kChoice, "FORMAT", "auto|safetensors|gguf|dummy", "auto", kModel, kWithModel, false, true,
     "weight format; gguf: the directory's .gguf file, even if there is a config.json; dummy: random weights in the "
     "shapes that config.json or the GGUF header gives"},
    {"dtype", 0, kChoice, "TYPE", "auto|float32|float16|bfloat16", "auto", kModel, kEngines, false, true,
     "type of floating-point weights, and of the KV cache unless --kv-cache-dtype says otherwise; auto: the "
     "checkpoint's type; float32 also disables rounding activations to 8 bits in layers that the checkpoint stores "
     "quantized"},
    {"quantization", 'q', kChoice, "METHOD", "none|int8|int4", "none", kModel, kEngines, false, true,
     "quantize floating-point weights to 8 or 4 bits at load time"},
    {"calibration", 0, kPath, "FILE|self", "", "", kModel, kEngines, false, true,
     "UTF-8 text of at least 256 tokens that --quantization int4 minimizes the error on; up to 32,768 tokens are used. "
     "self: a text that the model writes. The first load with a text can take minutes; the packed-weight cache keeps "
     "the result"},
    {"packed-cache-size", 0, kSize, "SIZE", "", "16Gi", kModel, kEngines, false, true,
     "disk space limit of the packed-weight cache in $XDG_CACHE_HOME/vllmcli/packed, which speeds up later starts; "
     "0: no cache"},
    {"kv-disk-cache", 0, kText, "SIZE|off", "", "", kModel, kSamplers, false, true,
     "disk space limit of the cache of keys and values in $XDG_CACHE_HOME/vllmcli/kv, with which a later run need not "
     "read the same beginning of a prompt again; default: 4G for chat, run and batch with models of more than 200 MB, "
     "off otherwise"},
    {"lora", 0, kText, "NAME=PATH|NAME", "", "", kModel, kEngines, true, true,
     "NAME=PATH: load a LoRA adapter and call it NAME, where PATH is a PEFT directory, a .gguf file or a repository of "
     "the hub; NAME: use this adapter; default: the only adapter that is loaded; rows of batch choose with \"lora\""},
    {"enable-lora", 0, kNegatable, "", "", "true", kModel, kEngines, false, true,
     "load the adapters of --lora; --no-enable-lora ignores those of the configuration file"},
    {"max-loras", 0, kInteger, "N", "", "1", kModel, kEngines, false, true,
     "number of LoRA adapters that requests may use at the same time; others wait"},
    {"max-cpu-loras", 0, kInteger, "N", "", "", kModel, kEngines, false, true,
     "number of LoRA adapters that are in memory at the same time; others are loaded when a request needs them; "
     "default: all"},
    {"max-lora-rank", 0, kInteger, "N", "", "16", kModel, kEngines, false, true, "highest rank of a LoRA adapter"},
    {"max-model-len", 0, kInteger, "N", "", "", kModel, kSamplers | kPoolers, false, true,
     "maximum length of prompt and output together, in tokens; default: the model's limit"},

    {"reasoning-parser", 0, kText, "NAME", "", "auto", kModel, kGenerate, false, true,
     "format of the model's thinking, by the name of vLLM's parser, such as qwen3, deepseek_r1, openai_gptoss, mistral "
     "or "
     "granite; auto: as the tokenizer and the chat template imply; none: thinking is part of the answer"},

    // Prompt.
    {"system", 0, kText, "TEXT", "", "", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "system message at the start of a new conversation"},
    {"preset", 0, kText, "NAME", "", "", kPrompt, Bits(kChat, kRun, kBatch), false, false,
     "use a saved system message, prompt and settings; see vllmcli presets; flags override the preset, and the preset "
     "overrides the environment and the configuration file"},
    {"param", 'p', kText, "NAME=VALUE", "", "", kPrompt, Bits(kChat, kRun, kBatch), true, false,
     "value of a variable of the preset, such as language=French"},
    {"chat-template", 0, kPath, "FILE", "", "", kPrompt, kTemplated, false, true,
     "Jinja template file to use instead of the model's template"},
    {"template-var", 0, kText, "NAME=VALUE", "", "", kPrompt, kTemplated, true, true,
     "variable for the chat template, such as enable_thinking=false; VALUE is parsed as JSON if it is valid JSON, else "
     "used as a string"},
    {"tools", 0, kText, "FILE|DIR|JSON", "", "", kPrompt, kTemplated, false, true,
     "tools that the model may call: an executable that describes itself with --schema, a .toml file with [[tool]] "
     "tables, a directory of these, or definitions alone as a JSON array in OpenAI's format, or a file with one; chat "
     "and run call tools that have a command; see docs/TOOLS.md"},
    {"tool-choice", 0, kText, "auto|none|required|NAME", "", "auto", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "whether the model calls a tool: auto: as it decides; none: its answer is text; required: its answer is at least "
     "one call; NAME: its answer is a call of this tool; in chat and run, required and NAME hold for the first round "
     "of calls of an answer; in batch, for rows without tool_choice"},
    {"approve-tools", 0, kChoice, "WHEN", "never|ask|always", "ask", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "run a tool that the model calls: never, after asking you, or always without asking; without a terminal, "
     "ask means never; in batch, only for --chat, as for the next two flags: rows run no tools"},
    {"chain-limit", 0, kInteger, "N", "", "5", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "end an answer after N rounds of tool calls; 0: no limit"},
    {"mcp", 0, kText, "COMMAND", "", "", kPrompt, Bits(kChat, kRun, kBatch), true, false,
     "start this program as an MCP server and offer its tools to the model, like those of the "
     "[mcp.NAME] tables in the configuration file; words are split as in a shell; off: start none"},
    {"tool-call-parser", 0, kText, "NAME", "", "auto", kPrompt, kGenerate, false, true,
     "format of the model's tool calls, by the name of vLLM's parser, such as hermes, llama3_json, mistral or "
     "pythonic; "
     "auto: as the chat template and the vocabulary imply; none: calls are part of the answer"},
    {"think", 0, kChoice, "MODE", "on|off|low|medium|high", "", kPrompt, kTemplated, false, true,
     "switch the model's thinking, or set how much it thinks, through variables of the chat template; off also hides "
     "any "
     "thinking; default: as the template decides"},
    {"apply-chat-template", 0, kNegatable, "", "", "", kPrompt, Bits(kBatch), false, false,
     "treat each prompt as a user message and apply the chat template; default: only for .txt, .csv and .tsv files, "
     "and only if the model has a template"},
    {"file", 'f', kPath, "FILE", "", "", kPrompt, Bits(kRun), true, false,
     "append a text file to the prompt, in a code block after its name; - is standard input; may be repeated"},
    {"prompt-ids", 0, kIds, "IDS", "", "", kPrompt, Bits(kComplete), false, false,
     "prompt as token ids, such as 1,2,3, instead of text"},
    {"now", 0, kText, "DATE", "", "", kPrompt, kTemplated, false, false,
     "date and time for the template's strftime_now, as YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS; default: the current time"},

    // Sampling: vLLM's SamplingParams, and the source of their defaults.
    {"max-tokens", 'n', kInteger, "N", "", "", kSampling, kGenerate, false, true,
     "maximum number of tokens to generate; default: the model's max_new_tokens, else as many as fit in the context"},
    {"generation-config", 0, kChoice, "SOURCE", "auto|vllm", "auto", kSampling, kGenerate | Bits(kShow), false, true,
     "source of sampling defaults; auto: the model's generation_config.json or GGUF general.sampling keys, or "
     "llama.cpp's defaults if the model sets no sampling parameter; vllm: vLLM's neutral values (temperature 1, no "
     "top-k, top-p or min-p), ignoring the model's files"},
    {"temperature", 't', kNumber, "T", "", "the model's value, else 1 if it sets another sampling parameter, else 0.8",
     kSampling, kGenerate, false, true, "randomness, 0 to 2; 0: always pick the most likely token"},
    {"top-p", 0, kNumber, "P", "", "the model's value, else 1 if it sets another sampling parameter, else 0.95",
     kSampling, kGenerate, false, true,
     "sample from the smallest set of most likely tokens whose probabilities add up to at least P; 1: all tokens"},
    {"top-k", 0, kInteger, "K", "", "the model's value, else 0 if it sets another sampling parameter, else 40",
     kSampling, kGenerate, false, true, "sample from the K most likely tokens; 0: all tokens"},
    {"min-p", 0, kNumber, "P", "", "the model's value, else 0 if it sets another sampling parameter, else 0.05",
     kSampling, kGenerate, false, true,
     "drop tokens whose probability is below P times that of the most likely token; 0: drop none"},
    {"presence-penalty", 0, kNumber, "V", "", "0", kSampling, kGenerate, false, true,
     "penalize tokens that occur in the output, -2 to 2"},
    {"frequency-penalty", 0, kNumber, "V", "", "0", kSampling, kGenerate, false, true,
     "penalize tokens by how often they occur in the output, -2 to 2"},
    {"repetition-penalty", 0, kNumber, "V", "", "the model's value, else 1", kSampling, kGenerate, false, true,
     "penalize tokens that occur in the prompt or the output; above 1: less repetition"},
    {"stop", 0, kText, "TEXT", "", "", kSampling, kGenerate, true, true,
     "end the output before this stop string; up to 16 strings of up to 256 bytes each"},
    {"stop-token-ids", 0, kIds, "IDS", "", "", kSampling, kGenerate, true, true, "stop at any of these token ids"},
    {"ignore-eos", 0, kSwitch, "", "", "", kSampling, kGenerate, false, true,
     "continue past the end-of-sequence (EOS) token"},
    {"min-tokens", 0, kInteger, "N", "", "0", kSampling, kGenerate, false, true,
     "suppress EOS and stop tokens, and ignore stop strings, until N tokens are generated"},
    {"thinking-budget", 0, kInteger, "N", "", "", kSampling, kGenerate, false, true,
     "end the model's thinking after N tokens; -1: no limit"},
    {"schema", 0, kText, "FIELDS", "", "", kSampling, kGenerate, false, true,
     "answer with a JSON object of exactly these fields, such as 'name, age int, tags str[]'; types: str, int, float, "
     "bool; off: no schema"},
    {"schema-multi", 0, kText, "FIELDS", "", "", kSampling, kGenerate, false, true,
     "as --schema, for a list of such objects: {\"items\": [...]}; off: no schema"},
    {"json-schema", 0, kText, "FILE|JSON", "", "", kSampling, kGenerate, false, true,
     "answer with JSON that this JSON Schema allows; off: no schema"},
    {"json-object", 0, kSwitch, "", "", "", kSampling, kGenerate, false, true, "answer with any JSON object"},
    {"any-order", 0, kSwitch, "", "", "", kSampling, kGenerate, false, true,
     "allow the members of JSON objects in any order, not only in that of the schema"},
    {"json-whitespace", 0, kChoice, "MODE", "compact|flexible", "compact", kSampling, kGenerate, false, true,
     "whitespace between tokens of JSON: none, or at most one line break and its indent"},
    {"regex", 0, kText, "RE", "", "", kSampling, kGenerate, false, true,
     "answer with a text that this regular expression matches as a whole; off: none"},
    {"choice", 0, kText, "TEXT", "", "", kSampling, kGenerate, true, true, "answer with one of the texts given"},
    {"grammar", 0, kText, "FILE", "", "", kSampling, kGenerate, false, true,
     "answer with a text of this grammar, in llama.cpp's GBNF or llguidance's Lark format; off: none"},
    {"structural-tag", 0, kText, "FILE|JSON", "", "", kSampling, kGenerate, false, true,
     "constrain the parts of the answer between tags, as vLLM's structural_tag; off: none"},
    {"n", 0, kInteger, "N", "", "1", kSampling, kSamplers & ~Bits(kChat), false, true,
     "number of answers per prompt, 1 to 128"},
    {"best-of", 0, kInteger, "N", "", "", kSampling, kGenerate & ~Bits(kChat), false, false,
     "sample N answers per prompt, and return the --n with the highest cumulative log probability"},
    {"use-beam-search", 0, kSwitch, "", "", "", kSampling, kGenerate & ~Bits(kChat), false, false,
     "search for the most probable answers with beam search; run and complete print the best one, or --n, and --json "
     "all with their scores"},
    {"beam-width", 0, kInteger, "N", "", "--n, or 4 if --n is 1", kSampling, kGenerate & ~Bits(kChat), false, false,
     "number of beams, 1 to 64"},
    {"length-penalty", 0, kNumber, "P", "", "1", kSampling, kGenerate & ~Bits(kChat), false, false,
     "rank the answers of beam search by their log probability divided by the P-th power of their length, -10 to 10"},
    {"logprobs", 0, kInteger, "K", "", "", kSampling, kGenerate & ~Bits(kChat), false, true,
     "add to JSON output the log probabilities of each output token and of the K most likely tokens at its position; "
     "-1: the whole vocabulary"},
    {"prompt-logprobs", 0, kInteger, "K", "", "", kSampling, kGenerate & ~Bits(kChat), false, true,
     "add to JSON output the log probabilities of each prompt token after the first and of the K most likely tokens at "
     "its position; -1: the whole vocabulary"},
    {"logit-bias", 0, kBias, "ID=V", "", "", kSampling, kGenerate, true, true,
     "add V, from -100 to 100, to the logit of token ID; up to 1024 tokens"},
    {"allowed-token-ids", 0, kIds, "IDS", "", "", kSampling, kGenerate, true, true, "generate only these token ids"},
    {"bad-words", 0, kText, "TEXT", "", "", kSampling, kGenerate, true, true,
     "never generate the token sequence of this string; up to 1024 strings of up to 256 bytes each"},
    {"seed", 0, kUnsigned, "N", "", "", kSampling, kSamplers, false, true,
     "random seed; default: a new one per run for chat, run and complete, 0 for batch and bench"},
    {"include-stop-str-in-output", 0, kSwitch, "", "", "", kSampling, kGenerate, false, true,
     "include the stop string in the output"},
    {"skip-special-tokens", 0, kNegatable, "", "", "true", kSampling, kGenerate | Bits(kTokenize), false, true,
     "omit special tokens from the text; tokenize --decode omits them only if this is set explicitly"},

    // Downloads.
    {"revision", 0, kText, "REVISION", "", "main", kModel, kWithModel | Bits(kPull, kModels), false, false,
     "branch, tag or commit of the repository"},
    {"include", 0, kText, "GLOB", "", "", kModel, Bits(kPull), true, false,
     "download the files that match, such as '*.json', instead of the default choice"},
    {"exclude", 0, kText, "GLOB", "", "", kModel, Bits(kPull), true, false, "do not download the files that match"},
    {"list", 0, kSwitch, "", "", "", kModel, Bits(kPull), false, false,
     "print models that run well on CPUs, with their size, memory and license, and download nothing"},
    {"dry-run", 0, kSwitch, "", "", "", kModel, Bits(kPull), false, false,
     "print the files and their sizes, and download nothing"},

    // Stored conversations.
    {"continue", 'c', kSwitch, "", "", "", kPrompt, Bits(kChat, kRun), false, false,
     "continue the most recent conversation; run: store the prompt and its answer in it"},
    {"resume", 0, kOptionalText, "NUMBER|TEXT", "", "", kPrompt, Bits(kChat, kRun), false, false,
     "continue the conversation with this number, or the only one whose title contains TEXT; without a value, chat "
     "lets "
     "you choose one"},
    {"save", 0, kNegatable, "", "", "true", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "store conversations in $XDG_DATA_HOME/vllmcli/chats.db, and typed lines in the history file; run stores only "
     "with --save, -c or --resume"},
    {"ephemeral", 0, kSwitch, "", "", "", kPrompt, Bits(kChat, kRun, kBatch), false, true,
     "write no file at all: like --no-save, and without the packed-weight cache"},

    {"context-shift", 0, kChoice, "POLICY", "half|off", "half", kPrompt, Bits(kChat), false, true,
     "what to do when the context is full; half: leave out the oldest turns in one cut, so that the rest fill at most "
     "half of the space that the system message and the new message leave; off: do not send the message"},

    {"secure", 0, kSwitch, "", "", "", kOutput, Bits(kChats), false, false,
     "chats rm: report an error, not only a warning, if other programs that use the database keep deleted text in its "
     "log"},

    // Output.
    {"json", 0, kSwitch, "", "", "", kOutput, kJson, false, false, "print the result as one line of JSON"},
    {"stream-json", 0, kSwitch, "", "", "", kOutput, kOnce, false, false,
     "stream the answer as JSON, one object per delta"},
    {"show-thinking", 0, kChoice, "MODE", "full|summary|hidden", "summary", kOutput, Bits(kChat, kRun), false, true,
     "show the model's thinking on standard error: all of it, one line with its time and number of tokens, or nothing"},
    {"stats", 0, kSwitch, "", "", "", kOutput, kGenerate, false, true,
     "print token counts, tokens/s and the time to first token to standard error; for batch, rows/s and prompt "
     "tokens/s"},
    {"markdown", 0, kNegatable, "", "", "true", kOutput, Bits(kChat, kRun), false, true,
     "on a terminal, render the Markdown of answers; elsewhere, and if NO_COLOR or TERM=dumb is set, text is never "
     "changed"},
    {"wrap", 0, kInteger, "N", "", "0", kOutput, Bits(kChat, kRun), false, true,
     "wrap rendered text after at most N columns; 0: at the width of the terminal; code is never wrapped"},
    {"stats-line", 0, kNegatable, "", "", "true", kOutput, Bits(kChat), false, true,
     "on a terminal, print a dim line after each answer: tokens/s, cached share of the prompt, context in use"},
    {"quiet", 0, kSwitch, "", "", "", kOutput, kEvery, false, true,
     "suppress status lines, progress and summaries; errors, warnings and --stats output remain"},
    {"interval", 0, kNumber, "SECONDS", "", "", kOutput, Bits(kTop), false, false,
     "with --json, print one line per interval until the process ends; at least 0.1"},
    {"decode", 0, kSwitch, "", "", "", kOutput, Bits(kTokenize), false, false, "convert token ids to text"},
    {"count", 0, kSwitch, "", "", "", kOutput, Bits(kTokenize), false, false, "print only the number of tokens"},
    {"add-special-tokens", 0, kNegatable, "", "", "true", kOutput, Bits(kTokenize), false, false,
     "add the tokenizer's special tokens, such as BOS"},
    {"jsonl", 0, kSwitch, "", "", "", kOutput, Bits(kTokenize, kRender) | kPoolers, false, false,
     "read JSON Lines, with one JSON value per line; tokenize and render then print JSON Lines too"},

    {"yes", 0, kSwitch, "", "", "", kOutput, Bits(kModels), false, false,
     "models rm: remove without asking; required if there is no terminal"},
    {"names", 0, kSwitch, "", "", "", kOutput, Bits(kModels), false, false,
     "print only the names of models and aliases, one per line, without those that a shell would have to quote; the "
     "completions use it"},

    // The batch command.
    {"output", 'o', kPath, "FILE", "", "", kBatchRun, Bits(kBatch, kEmbed), false, false,
     "write to FILE instead of standard output"},
    {"overwrite", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch, kEmbed), false, false,
     "replace an existing output file; without this, no row in a file is ever lost"},
    {"resume", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "continue the job of an existing output file: keep its rows and run the others"},
    {"resume-anyway", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "like --resume, also if rows have been added to INPUT; a finished row must not have changed"},
    {"retry-errors", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "like --resume, and run failed rows again"},
    {"errors", 0, kPath, "FILE", "", "", kBatchRun, Bits(kBatch), false, false,
     "write failed rows to FILE, with their errors, instead of the output; FILE can be the INPUT of another batch"},
    {"fsync", 0, kChoice, "WHEN", "row|second|end", "second", kBatchRun, Bits(kBatch), false, true,
     "flush finished rows to the disk after each row, every second or at the end; decides what a power failure can "
     "lose; kill -9 loses no finished row"},
    {"input-format", 0, kChoice, "FORMAT", "txt|jsonl|csv|tsv", "", kBatchRun, Bits(kBatch), false, false,
     "format of INPUT; default: by file extension, jsonl for standard input"},
    {"template", 0, kText, "TEXT", "", "", kBatchRun, Bits(kBatch), false, false,
     "prompt for each row of a .csv or .tsv file, such as 'Translate: {column}'; write literal braces as {{ and }}"},
    {"template-file", 0, kPath, "FILE", "", "", kBatchRun, Bits(kBatch), false, false,
     "like --template, with the text of FILE"},
    {"system-template", 0, kText, "TEXT", "", "", kBatchRun, Bits(kBatch), false, false,
     "system message for each row of a .csv or .tsv file, with {column} as in --template"},
    {"id-column", 0, kText, "NAME", "", "", kBatchRun, Bits(kBatch), false, false,
     "column of a .csv or .tsv file with the id of each row"},
    {"carry", 0, kNegatable, "", "", "true", kBatchRun, Bits(kBatch), false, false,
     "repeat the fields of a row that are no prompt and no setting in the output, as \"input\""},
    {"carry-column", 0, kText, "NAME", "", "", kBatchRun, Bits(kBatch), true, false,
     "column of a .csv or .tsv file to repeat in the output, instead of those that the templates do not use"},
    {"prompt", 0, kText, "TEXT", "", "", kBatchRun, Bits(kBatch), false, false,
     "prompt for each row, in front of its text, or around it if TEXT contains {input}; text files are then one row "
     "each, with the path as the id"},
    {"limit", 0, kInteger, "N", "", "", kBatchRun, Bits(kBatch), false, false, "run only the first N rows"},
    {"sample", 0, kInteger, "N", "", "", kBatchRun, Bits(kBatch), false, false,
     "run only N rows, chosen at random by --seed"},
    {"shard", 0, kText, "I/N", "", "", kBatchRun, Bits(kBatch), false, false,
     "run only each Nth row, from row I on; I counts from 0, so 0/2 and 1/2 together are all rows"},
    {"format", 0, kChoice, "FORMAT", "jsonl|csv|text", "jsonl", kBatchRun, Bits(kBatch), false, false,
     "output format; csv: the columns of the input, output, finish_reason and error, separated by tabs if INPUT is; "
     "text: only the answers"},
    {"progress", 0, kChoice, "MODE", "auto|plain|none|json", "auto", kBatchRun, Bits(kBatch), false, true,
     "progress on standard error; auto: one line on a terminal, else plain; plain: a line every 30 s; json: a JSON "
     "line every second"},
    {"ordered", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false, "write rows in input order"},
    {"chat", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "open a chat on the same engine while the batch runs; its answers come first; the default of "
     "--max-num-batched-tokens is then 512"},
    {"live", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "show the live view (see vllmcli top) while the batch runs; q stops the batch and keeps the finished rows"},
    {"check", 0, kSwitch, "", "", "", kBatchRun, Bits(kBatch), false, false,
     "validate every row, print the errors, and generate nothing"},

    // The bench command.
    {"input-len", 0, kInteger, "N", "", "32", kBenchRun, Bits(kBench), false, false,
     "length of each prompt in tokens, without the shared prefix"},
    {"prefix-len", 0, kInteger, "N", "", "0", kBenchRun, Bits(kBench), false, false,
     "length of the prefix that all prompts share, in tokens"},
    {"output-len", 0, kInteger, "N", "", "128", kBenchRun, Bits(kBench), false, false,
     "length of each answer in tokens"},
    {"batch-size", 0, kInteger, "N", "", "8", kBenchRun, Bits(kBench), false, false,
     "prompts per batch (latency only)"},
    {"num-iters-warmup", 0, kInteger, "N", "", "3", kBenchRun, Bits(kBench), false, false,
     "warm-up runs before the measured ones (latency only)"},
    {"num-iters", 0, kInteger, "N", "", "10", kBenchRun, Bits(kBench), false, false, "measured runs (latency only)"},
    {"num-prompts", 0, kInteger, "N", "", "100", kBenchRun, Bits(kBench), false, false,
     "number of requests (throughput only)"},
    {"dataset", 0, kPath, "FILE", "", "", kBenchRun, Bits(kBench), false, false,
     "use the prompts of FILE, again from the start at its end, instead of random ones: one per line, or in a .jsonl "
     "file rows as batch accepts them; an answer then ends at EOS, or after --output-len tokens"},
    {"output-json", 0, kPath, "FILE", "", "", kBenchRun, Bits(kBench), false, false,
     "also write the results to FILE as JSON"},
    {"compare", 0, kPath, "FILE", "", "", kBenchRun, Bits(kBench), false, false,
     "show the results next to those of an earlier run, saved with --output-json"},

    // The perplexity command.
    {"context", 0, kInteger, "N", "", "512", kPerplexityRun, Bits(kPerplexity), false, false,
     "tokens per chunk, at most the model's context"},
    {"stride", 0, kInteger, "N", "", "", kPerplexityRun, Bits(kPerplexity), false, false,
     "begin a chunk every N tokens and count its last N tokens, as llama.cpp's --ppl-stride; slower, and each token "
     "has more context; default: chunks do not overlap"},
    {"kl-reference", 0, kText, "MODEL", "", "", kPerplexityRun, Bits(kPerplexity), false, false,
     "also compare with the distributions of this model, which must have the same vocabulary; default: the model of "
     "-m, if --kl-reference-quantization is given"},
    {"kl-reference-quantization", 0, kChoice, "METHOD", "none|int8|int4", "none", kPerplexityRun, Bits(kPerplexity),
     false, false, "quantization of the reference at load time; it has all other settings of the model"},

    // The embed, score and rerank commands.
    {"pooling", 0, kChoice, "TYPE", "mean|cls|last|lasttoken|max|mean_sqrt_len_tokens|weightedmean", "", kPoolingRun,
     kPoolers, false, false,
     "how the hidden states of the tokens become one vector; default: as the model's files say, else that of the first "
     "token of an encoder and of the last token of a decoder"},
    {"dimensions", 0, kInteger, "N", "", "", kPoolingRun, kPoolers, false, false,
     "keep the first N dimensions of each vector, then normalize it; for models that were trained for this"},
    {"normalize", 0, kNegatable, "", "", "true", kPoolingRun, kPoolers, false, false,
     "divide each vector by its length; default: as the model's files say"},
    {"prompt-name", 0, kText, "NAME", "", "", kPoolingRun, kPoolers, false, false,
     "put the prompt of this name, from config_sentence_transformers.json, in front of each text, such as query or "
     "document"},
    {"instruction", 0, kText, "TEXT", "", "", kPoolingRun, kPoolers, false, false,
     "put TEXT in front of each text instead; for a reranker that is a language model, the task that its prompt names"},
    {"whole-files", 0, kSwitch, "", "", "", kPoolingRun, Bits(kEmbed), false, false,
     "each FILE is one text, with its path as the id; FILE may be a directory"},
    {"vector-format", 0, kChoice, "FORMAT", "jsonl|npy|sqlite", "", kPoolingRun, Bits(kEmbed), false, false,
     "format of the output; default: by the extension of --output, jsonl for standard output"},
    {"encoding-format", 0, kChoice, "FORMAT", "float|base64", "float", kPoolingRun, Bits(kEmbed), false, false,
     "vectors in JSON as numbers, or as base64 of little-endian float32"},
    {"top-n", 0, kInteger, "N", "", "", kPoolingRun, Bits(kRerank), false, false, "print only the N best documents"},

    // Engine: vLLM's engine arguments, and some for CPUs and memory limits.
    {"tensor-parallel-size", 0, kInteger, "N", "", "1", kEngine, kEngines, false, true,
     "split the model across N ranks, which changes no result; short form: -tp"},
    {"threads-per-rank", 0, kInteger, "N", "", "0", kEngine, kEngines, false, true,
     "threads per rank; 0: the available cores divided by the number of ranks"},
    {"data-parallel-size", 0, kInteger, "N", "", "1", kEngine, kEngines, false, true,
     "run N engines in this process that share the weights, each with its own cores and an equal part of the KV "
     "cache's "
     "memory; requests with the same prefix go to the same engine; short form: -dp"},
    {"max-num-seqs", 0, kInteger, "N", "", "128", kEngine, kEngines, false, true, "maximum sequences per step"},
    {"max-num-batched-tokens", 0, kInteger, "N", "", "2048", kEngine, kEngines, false, true,
     "maximum tokens per step; without chunked prefill, raised to at least --max-model-len. Encoders compute several "
     "texts in one step only if they have up to 512 tokens in all"},
    {"long-prefill-token-threshold", 0, kInteger, "N", "", "0", kEngine, kEngines, false, true,
     "maximum tokens of one prompt per step; 0: no limit"},
    {"block-size", 0, kInteger, "N", "", "16", kEngine, kEngines, false, true,
     "tokens per KV cache block, a multiple of 16"},
    {"kv-cache-dtype", 0, kChoice, "TYPE", "auto|float32|bfloat16|float16|int8", "auto", kEngine,
     kEngines | Bits(kShow), false, true,
     "type of the KV cache; auto: the type that --dtype names; if --dtype is auto, the checkpoint's type, but bfloat16 "
     "if that is float16 and the weights are quantized; int8: one scale per token and head"},
    {"kv-cache-memory", 0, kSize, "SIZE", "", "", kEngine, kEngines, false, true,
     "memory for the KV cache, such as 512M or 4Gi; default: based on free memory"},
    {"num-kv-blocks", 0, kInteger, "N", "", "", kEngine, kEngines, false, true,
     "number of KV cache blocks; overrides --kv-cache-memory"},
    {"enable-prefix-caching", 0, kNegatable, "", "", "true", kEngine, kSamplers, false, true,
     "reuse the KV cache of prefixes that requests share"},
    {"enable-chunked-prefill", 0, kNegatable, "", "", "true", kEngine, kEngines, false, true,
     "prefill long prompts in chunks over several steps"},
    {"enable-in-reasoning", 0, kNegatable, "", "", "false", kEngine, kSamplers, false, true,
     "let a schema or grammar constrain the model's thinking too, not only the answer after it"},
    {"enable-jump-decoding", 0, kNegatable, "", "", "true", kEngine, kSamplers, false, true,
     "append the tokens that a schema or grammar leaves no choice about, such as the keys of JSON, without a step of "
     "the model for each; the answer is the same"},
    {"speculative-config", 0, kText, "CONFIG", "", kDefaultSpeculativeConfig, kEngine, kSamplers, false, true,
     "draft several tokens and check them in one step, which changes the speed and no token: off, auto, ngram, suffix, "
     "grammar, or a JSON object with vLLM's keys, such as {\"method\": \"draft_model\", \"model\": \"OWNER/NAME\"}; "
     "bench without --dataset: off"},
    {"scheduling-policy", 0, kChoice, "POLICY", "fcfs|priority", "fcfs", kEngine, kEngines, false, true,
     "order of waiting requests; fcfs: first come, first served; priority: lowest priority value first"},
    {"max-logprobs", 0, kInteger, "N", "", "20", kEngine, kSamplers, false, true,
     "largest K for --logprobs and --prompt-logprobs; -1: no limit"},
    {"logprobs-mode", 0, kChoice, "MODE", "raw_logprobs|processed_logprobs", "raw_logprobs", kEngine, kSamplers, false,
     true,
     "distribution of --logprobs; raw_logprobs: the model's own; processed_logprobs: the one that tokens are drawn "
     "from, after temperature, penalties, top-k, top-p and the schema or grammar"},
    {"max-output-memory", 0, kSize, "SIZE", "", "", kEngine, kSamplers, false, true,
     "memory for the tokens and logprobs of unfinished requests; requests wait until they fit; a request that could "
     "exceed the limit on its own is rejected; default: an eighth of the memory left after the KV cache, but at "
     "least enough for one full-length answer"},
    {"linear-backend", 0, kChoice, "NAME", "native|openblas", "native", kEngine, kEngines, false, true,
     "matrix multiplication library; openblas: requires dtype float32 and unquantized weights, and its results may "
     "depend on the other requests in the batch"},
    {"publish", 0, kNegatable, "", "", "true", kEngine, kEngines, false, true,
     "let vllmcli top of the same user watch and steer this process, through a socket in $XDG_RUNTIME_DIR/vllmcli or "
     "/tmp/vllmcli-UID"},
    {"isa", 0, kChoice, "NAME",
     "auto|generic|avx2|avx2_vnni|avx512|avx512_vnni|avx512_bf16|avx512_amx|neon|neon_dotprod|neon_i8mm|neon_bf16",
     "auto", kEngine, kEngines, false, true,
     "instruction set of the kernels; auto: the best that this machine supports; $VLLMCLI_ISA overrides the default "
     "and "
     "the configuration file"},
    {"trace", 0, kPath, "FILE", "", "", kEngine, kSamplers, false, false,
     "record the scheduler's decisions in the new file FILE, without any text, for vllmcli trace"},

    // All commands.
    {"color", 0, kChoice, "WHEN", "auto|always|never", "auto", kGeneral, kEvery, false, true,
     "use colors; auto: on a terminal, unless NO_COLOR, CLICOLOR=0 or TERM=dumb is set; CLICOLOR_FORCE also turns "
     "them on"},
    {"config", 0, kPath, "FILE", "", "", kGeneral, kEvery, false, false,
     "read FILE instead of $XDG_CONFIG_HOME/vllmcli/config.toml"},
    {"help", 'h', kSwitch, "", "", "", kGeneral, kEvery, false, false, "print help for the command"},
    {"help-all", 0, kSwitch, "", "", "", kGeneral, kEvery, false, false,
     "print help for the command, with all its flags"},
    {"version", 'V', kSwitch, "", "", "", kGeneral, kEvery, false, false, "print the version"},
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
    case kPoolingRun:
      return "Vectors and scores";
    case kPerplexityRun:
      return "Perplexity";
    case kEngine:
      return "Engine";
    case kGeneral:
      return "General";
  }
  return "";
}

}  // namespace vllm::app
