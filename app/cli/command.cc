#include "app/cli/command.h"

#include <array>

namespace vllm::app {
namespace {

constexpr auto kCommands = std::to_array<CommandInfo>({
    {Command::kChat, "chat", "", "", OperandKind::kNone, "chat with a model",
     "Chats with a model. The exact tokens of earlier turns are kept so that their KV cache can be reused, unless the "
     "chat template rewrites these turns, another model or template produced them, or the context is full. "
     "Conversations are stored unless --no-save is set, and -c or --resume continues one. /help lists the chat "
     "commands. Ctrl-C stops an answer and keeps the text so far; Ctrl-D on an empty line quits.",
     "vllmcli chat\n"
     "vllmcli chat -c\n"
     "vllmcli chat -m ./SmolLM2-1.7B-Instruct-Q4_K_M.gguf --system 'Answer in one sentence.'"},
    {Command::kChats, "chats", "list|search|show|export|import|rm [ARGUMENT...]", "list|search|show|export|import|rm",
     OperandKind::kFile, "list, search, show, export, import or delete stored conversations",
     "chats list, or chats alone, prints up to 1000 stored conversations, the most recent first. chats search TEXT "
     "finds up to 100 messages. chats show NUMBER prints the current branch of a conversation as Markdown, or with "
     "--json all branches with their token ids. chats export NUMBER FILE writes a new .md or .html file with the "
     "current branch, or a new .json file with all branches. chats import FILE reads such a .json file, the "
     "conversations.json of a ChatGPT export, or the logs.db of the llm program; - reads JSON from standard input. "
     "chats rm NUMBER... deletes "
     "conversations and their text from the database. Lines that you typed remain in the chat's history file.",
     "vllmcli chats search prefix cache\n"
     "vllmcli chats export 12 talk.md\n"
     "vllmcli chats rm 12 13"},
    {Command::kRun, "run", "[PROMPT...]", "", OperandKind::kNone, "answer one prompt using the model's chat template",
     "Answers one prompt. The words of PROMPT are joined with spaces. Text piped to standard input comes first, "
     "followed by a line break and PROMPT. The argument - reads standard input even when it is a terminal. Put -- "
     "before a prompt that begins with a dash. With -c or --resume, the prompt continues a stored conversation, "
     "exactly as "
     "in a chat. Otherwise it is stored only with --save.",
     "vllmcli run 'How do I run a batch?'\n"
     "git diff | vllmcli run -m ./model 'Write a commit message for this:'\n"
     "vllmcli run -m ./model -t 0 --json - <prompt.txt\n"
     "vllmcli run -c 'and in French?'"},
    {Command::kComplete, "complete", "[PROMPT...]", "", OperandKind::kNone, "continue text without a chat template",
     "Continues PROMPT as plain text, with the tokenizer's special tokens (such as BOS) added. Otherwise works like "
     "run. Unless --max-tokens or the model's max_new_tokens sets a limit, generation continues until the model ends "
     "the text, a stop string or stop token occurs, or the context is full.",
     "vllmcli complete -m ./model -n 50 'Once upon a time'\n"
     "vllmcli complete -m ./model -t 0 -n 20 --json --logprobs 3 'The capital of France is'"},
    {Command::kBatch, "batch", "INPUT...|status OUTPUT|retry OUTPUT", "", OperandKind::kFile,
     "answer every prompt in a file",
     "Answers every row of INPUT with continuous batching and writes one JSON line per row as it completes. INPUT is a "
     ".txt, .jsonl, .csv or .tsv file, or - for standard input; with --prompt, also text files, directories and "
     "patterns, in which each file is a row. Rows of .txt, .csv and .tsv files go through the "
     "model's chat template if it has one; a \"prompt\" in a .jsonl file is continued as plain text. "
     "--apply-chat-template and --no-apply-chat-template override both, except in rows of the OpenAI batch API. "
     "\"messages\" always go through the template. A "
     "bad row becomes an error record (with --format text, an empty line) and does not stop the job. An output file "
     "has a "
     "job file, OUTPUT.job, with which --resume continues an interrupted job, even after kill -9, and gives exactly "
     "the "
     "rows of an uninterrupted one. batch status OUTPUT describes a job, running or not. batch retry OUTPUT runs the "
     "failed rows again with the recorded settings.",
     "vllmcli batch prompts.jsonl -m ./model -o answers.jsonl -n 200\n"
     "vllmcli batch words.csv -m ./model --template 'Translate to French: {word}' --ordered --format text\n"
     "vllmcli batch prompts.jsonl -m ./model -o answers.jsonl -n 200 --resume\n"
     "vllmcli batch notes/*.txt --prompt 'Summarize:' -o summaries.jsonl\n"
     "vllmcli batch prompts.jsonl --check"},
    {Command::kPresets, "presets", "list|show|edit|rm [NAME...]", "list|show|edit|rm", OperandKind::kNone,
     "list, show, edit or delete presets for chat, run and batch",
     "A preset is a system message, a prompt, a model, tools and sampling settings under one name, for --preset and "
     "/preset. In a prompt, {input} is the text of the user or of a batch row, and {NAME} is a variable. presets "
     "list, or presets alone, prints all presets. presets show NAME prints one as TOML and says where it is. presets"
     " edit NAME opens $VISUAL or $EDITOR with the preset, or with a new one, and stores the result if it is valid. "
     "presets rm NAME... deletes files of yours; the presets that ship with the program stay, and a file of yours "
     "hides the shipped preset of the same name. A flag overrides the preset, because it is typed for one run; the "
     "preset overrides the environment and the configuration file, because it is chosen for one task.",
     "vllmcli presets show translate\n"
     "vllmcli run --preset translate -p language=French <letter.txt\n"
     "vllmcli presets edit review"},
    {Command::kCache, "cache", "list|clear|verify", "list|clear|verify", OperandKind::kNone,
     "list, clear or verify the cache of keys and values",
     "With --kv-disk-cache, the keys and values of the tokens that a model has read and written are kept in "
     "$XDG_CACHE_HOME/vllmcli/kv, together with the tokens. cache list, or cache alone, prints how much there is of "
     "each model. cache clear deletes all of it. cache verify reads all of it and removes what is damaged. They may "
     "run "
     "while other processes use the cache.",
     "vllmcli cache list\n"
     "vllmcli cache clear"},
    {Command::kBench, "bench", "latency|throughput", "latency|throughput", OperandKind::kNone, "benchmark the engine",
     "After a warm-up, bench latency runs batches of random prompts one after another and measures each. "
     "bench throughput measures many requests submitted at once. --dataset takes the prompts from a file. "
     "--load-format dummy needs only a directory with config.json.",
     "vllmcli bench latency -m ./model --input-len 128 --output-len 64 --batch-size 1\n"
     "vllmcli bench throughput -m ./model --num-prompts 200 --json"},
    {Command::kPerplexity, "perplexity", "FILE", "", OperandKind::kFile, "measure how well a model predicts a text",
     "Prints the perplexity of the text in FILE, or of standard input if FILE is -, as llama.cpp's llama-perplexity "
     "defines it: the text is cut into chunks of --context tokens, each begins with BOS if the tokenizer adds it, and "
     "the tokens of its second half count. A lower perplexity is better; values of models with different tokenizers "
     "cannot be compared. With --kl-reference or --kl-reference-quantization, also prints how far the model's "
     "distributions are from those of a reference with the same vocabulary: the KL divergence, how often both have the "
     "same most probable token, and the ratio of the perplexities. Both models are then in memory.",
     "vllmcli perplexity wiki.test.raw -m ./SmolLM2-1.7B-Instruct-Q4_K_M.gguf\n"
     "vllmcli perplexity wiki.test.raw -m ./model -q int4 --kl-reference-quantization none\n"
     "vllmcli perplexity - -m ./Q4_K_M.gguf --kl-reference ./F16.gguf --json <book.txt"},
    {Command::kEmbed, "embed", "[FILE...]", "", OperandKind::kFile, "turn texts into vectors",
     "Prints the vector of each line of the FILEs, or of standard input, as one line of JSON; -o writes them to a "
     "file: "
     "JSON lines, a NumPy array (.npy) or a table of an SQLite database (.sqlite, .db). The model is an encoder such "
     "as "
     "BERT, or a language model. Its sentence-transformers files say how the hidden states of a text become a vector, "
     "and which prompt belongs in front of it; flags override them. A text that is longer than the model allows is "
     "cut, "
     "with a warning.",
     "vllmcli embed -m sentence-transformers/all-MiniLM-L6-v2 notes.txt\n"
     "vllmcli embed -m Qwen/Qwen3-Embedding-0.6B --prompt-name query queries.txt -o queries.npy\n"
     "vllmcli embed -m ./bge-small --jsonl documents.jsonl -o documents.sqlite"},
    {Command::kScore, "score", "TEXT_1 TEXT_2...", "", OperandKind::kNone, "compare texts",
     "Prints a score for TEXT_1 with each other text, one line of JSON for each. --jsonl reads pairs from the files, "
     "or "
     "from standard input: [\"TEXT_1\", \"TEXT_2\"], or {\"text_1\": ..., \"text_2\": ...}. A reranker scores the pair "
     "with its classifier; other models give the similarity of the two vectors.",
     "vllmcli score -m BAAI/bge-reranker-base 'What is a panda?' 'A bear of China.' 'A kind of bread.'\n"
     "vllmcli score -m ./minilm --jsonl pairs.jsonl"},
    {Command::kRerank, "rerank", "QUERY [FILE...]", "", OperandKind::kFile,
     "sort documents by their relevance to a query",
     "Scores each line of the FILEs, or of standard input, for QUERY, and prints them as lines of JSON, best first. "
     "With "
     "--jsonl, each line is a string or an object with \"text\". A language model whose name contains \"rerank\" is "
     "asked "
     "whether the document answers the query, with the prompt of Qwen3-Reranker.",
     "vllmcli rerank 'how to brew tea' passages.txt -m BAAI/bge-reranker-v2-m3 --top-n 5\n"
     "grep -h . notes/*.txt | vllmcli rerank 'tax deadline' -m Qwen/Qwen3-Reranker-0.6B"},
    {Command::kTop, "top", "[PID]", "", OperandKind::kNone, "watch a running engine",
     "Shows what a running vllmcli does: its requests, token rates, steps and KV blocks. Without PID, shows the "
     "process that started last; Tab lists the others. p pauses admission, so that no new request starts, and k aborts "
     "a request. Only processes of the same user and with the same XDG_RUNTIME_DIR are shown, and none that run with "
     "--no-publish.",
     "vllmcli top\n"
     "vllmcli top --json\n"
     "vllmcli top 4711 --json --interval 5"},
    {Command::kTokenize, "tokenize", "[TEXT]", "", OperandKind::kNone, "convert text to token ids, or back",
     "Prints the token ids of TEXT, or of standard input if TEXT is missing or -, as one JSON array. --decode converts "
     "token ids to text.",
     "vllmcli tokenize -m ./model 'Hello, world'\n"
     "vllmcli tokenize -m ./model --count <book.txt"},
    {Command::kRender, "render", "FILE.json", "", OperandKind::kFile, "render messages with a chat template",
     "Applies the model's chat template to a JSON object with messages, tools and other variables (or to an array of "
     "messages) and prints the exact prompt text. FILE.json may be - for standard input.",
     "echo '[{\"role\":\"user\",\"content\":\"hi\"}]' | vllmcli render -m ./model -"},
    {Command::kModels, "models", "[list|rm NAME...|alias [NAME=MODEL...]|use NAME]", "list|rm|alias|use",
     OperandKind::kModel, "list and remove models, name them, and set the default",
     "models list, or models alone, prints the models in the Hugging Face cache and in vllmcli's own model directory, "
     "and the bundled model: name, size, type and when it was last loaded. A * marks the default. models rm NAME... "
     "removes models from both places, after a question that shows their size; OWNER/NAME:TAG removes only this file, "
     "and --revision only one revision. models alias NAME=MODEL makes a short name, models alias NAME= removes it, and "
     "models alias lists all. models use NAME makes a model the default, by the line model = \"NAME\" in the "
     "configuration file; models use guide restores the bundled model.",
     "vllmcli models\n"
     "vllmcli models alias small=bartowski/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M\n"
     "vllmcli models use small\n"
     "vllmcli models rm bartowski/SmolLM2-1.7B-Instruct-GGUF:Q8_0"},
    {Command::kPull, "pull", "REPO[:TAG]...", "", OperandKind::kNone, "download models from the Hugging Face hub",
     "Downloads models into the Hugging Face cache, where transformers and llama.cpp find them too, and prints the "
     "path "
     "of each. REPO is OWNER/NAME, hf.co/OWNER/NAME or a URL of the hub. TAG is a quantization such as Q4_K_M, or the "
     "path of a .gguf file in the repository. Without TAG, a repository with config.json and safetensors files is "
     "downloaded in that format; from any other, the GGUF file with Q4_K_M, else Q8_0, else the first. Pickles are "
     "never downloaded. Files that are complete in the cache are not downloaded again, and an interrupted download "
     "continues "
     "where it stopped. The environment variables HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_CACHE and those of "
     "proxies work as in huggingface_hub.",
     "vllmcli pull HuggingFaceTB/SmolLM2-1.7B-Instruct\n"
     "vllmcli pull bartowski/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M\n"
     "vllmcli pull hf.co/Qwen/Qwen3-0.6B --dry-run"},
    {Command::kShow, "show", "[MODEL]", "", OperandKind::kModel, "describe a model without loading it",
     "Prints a model's architecture, parameter count, tensor types, sizes, kind of tokenizer, source of the chat "
     "template, and sampling defaults. Does not read the matrices in the weight files.",
     "vllmcli show ./SmolLM2-1.7B-Instruct-Q4_K_M.gguf\n"
     "vllmcli show --json ./model"},
    {Command::kTrace, "trace", "show|replay FILE", "show|replay", OperandKind::kFile,
     "show or replay recorded scheduling decisions",
     "Reads a trace that --trace FILE has recorded; - is standard input. trace show prints one line per step: the "
     "tokens scheduled, the requests, prefix-cache hits, preemptions, finished requests and KV blocks in use. "
     "trace replay runs the scheduler alone again with the recorded inputs. It exits with status 0 if every decision "
     "is the same, and with status 1 at the first that differs. A trace contains no text and no token ids.",
     "vllmcli batch prompts.jsonl --trace run.trace -o answers.jsonl\n"
     "vllmcli trace show run.trace\n"
     "vllmcli trace replay run.trace"},
    {Command::kConfig, "config", "", "", OperandKind::kNone, "show the settings in effect and their sources",
     "Prints each setting that the configuration file can contain, with its value and its source: default, "
     "configuration file, environment or command line.",
     ""},
    {Command::kCompletions, "completions", "bash|zsh|fish", "bash|zsh|fish", OperandKind::kNone,
     "print a shell completion script",
     "Prints a script that lets bash, zsh or fish complete vllmcli's commands and flags.",
     "source <(vllmcli completions bash)"},
});

}  // namespace

std::span<const CommandInfo> CommandTable() { return kCommands; }

std::optional<Command> FindCommand(std::string_view name) {
  for (const CommandInfo& info : kCommands) {
    if (info.name == name) return info.command;
  }
  return std::nullopt;
}

const CommandInfo& CommandInfoOf(Command command) {
  for (const CommandInfo& info : kCommands) {
    if (info.command == command) return info;
  }
  return kCommands[0];
}

}  // namespace vllm::app
