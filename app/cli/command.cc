#include "app/cli/command.h"

#include <array>

namespace vllm {
namespace {

constexpr std::array<CommandInfo, 11> kCommands = {{
    {Command::kChat, "chat", "", "", false, "chat with a model",
     "Chats with a model. The conversation is kept as the exact tokens that were sampled, so each turn computes only "
     "what is new. /help lists the commands. Ctrl-C stops an answer and keeps its beginning; Ctrl-D on an empty line "
     "leaves.",
     "vllmcli chat\n"
     "vllmcli chat -m ./SmolLM2-1.7B-Instruct-Q4_K_M.gguf --system 'Answer in one sentence.'"},
    {Command::kRun, "run", "[PROMPT...]", "", false, "answer one prompt through the model's chat template",
     "Answers one prompt. The words of PROMPT are joined by spaces; piped text comes before them, with a line break "
     "between. - reads standard input, also from a terminal. Put -- before a prompt that begins with a dash.",
     "vllmcli run 'How do I run a batch?'\n"
     "git diff | vllmcli run -m ./model 'Write a commit message for this:'\n"
     "vllmcli run -m ./model -t 0 --json - <prompt.txt"},
    {Command::kComplete, "complete", "[PROMPT...]", "", false, "continue a text, without a template",
     "Continues PROMPT as plain text with the tokenizer's special tokens added; otherwise like run. Without "
     "--max-tokens it goes on until the model ends the text or the context is full.",
     "vllmcli complete -m ./model -n 50 'Once upon a time'\n"
     "vllmcli complete -m ./model -t 0 -n 20 --json --logprobs 3 'The capital of France is'"},
    {Command::kBatch, "batch", "INPUT", "", true, "answer all prompts of a file",
     "Answers every row of INPUT by continuous batching and writes one JSON line per row as it completes. INPUT is "
     ".txt, .jsonl, .csv or .tsv, or - for standard input. A line of text is answered through the model's chat "
     "template where it has one, a \"prompt\" is continued as plain text (--[no-]chat decides otherwise); \"messages\" "
     "always go through the template. A bad row becomes an error record and never ends the job.",
     "vllmcli batch prompts.jsonl -m ./model -o answers.jsonl -n 200\n"
     "vllmcli batch words.csv -m ./model --template 'Translate to French: {word}' --ordered --format text\n"
     "vllmcli batch prompts.jsonl --check"},
    {Command::kBench, "bench", "latency|throughput", "latency|throughput", false, "measure the engine",
     "latency runs one batch of random prompts again and again; throughput runs many requests at once. "
     "--load-format dummy needs only a directory with config.json.",
     "vllmcli bench latency -m ./model --input-len 128 --output-len 64 --batch-size 1\n"
     "vllmcli bench throughput -m ./model --num-prompts 200 --json"},
    {Command::kTokenize, "tokenize", "[TEXT]", "", false, "text to token ids and back",
     "Prints the token ids of TEXT, or of standard input, as one JSON array; --decode does the opposite.",
     "vllmcli tokenize -m ./model 'Hello, world'\n"
     "vllmcli tokenize -m ./model --count <book.txt"},
    {Command::kRender, "render", "FILE.json", "", true, "messages to the prompt text of a chat template",
     "Renders a JSON object with messages, tools and other variables (or an array of messages) through the model's "
     "chat template and prints the exact prompt text. - is standard input.",
     "echo '[{\"role\":\"user\",\"content\":\"hi\"}]' | vllmcli render -m ./model -"},
    {Command::kModels, "models", "", "", false, "list the installed models",
     "Lists the models in the Hugging Face cache and in the program's own directory, and the one that ships.", ""},
    {Command::kShow, "show", "[MODEL]", "", true, "describe a model without loading it",
     "Prints architecture, parameters, types, sizes, files and sampling defaults of a model. Reads only the headers of "
     "weight files.",
     "vllmcli show ./SmolLM2-1.7B-Instruct-Q4_K_M.gguf\n"
     "vllmcli show --json ./model"},
    {Command::kConfig, "config", "", "", false, "show the settings in effect and where they come from",
     "Prints every setting with its value and source: default, the configuration file, the environment or a flag.", ""},
    {Command::kCompletions, "completions", "bash|zsh|fish", "bash|zsh|fish", false, "print a completion script",
     "Prints the script that lets bash, zsh or fish complete this program's commands and flags.",
     "source <(vllmcli completions bash)"},
}};

}  // namespace

std::span<const CommandInfo> CommandTable() { return kCommands; }

std::optional<Command> FindCommand(std::string_view name) {
  for (const CommandInfo& info : kCommands) {
    if (info.name == name) return info.command;
  }
  return std::nullopt;
}

const CommandInfo& InfoOf(Command command) {
  for (const CommandInfo& info : kCommands) {
    if (info.command == command) return info;
  }
  return kCommands[0];
}

}  // namespace vllm
