#include "app/cli/docs/help.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "app/cli/wrap_words.h"

namespace vllm::app {
namespace {

struct FirstFlags {
  std::optional<Command> command;       // nullopt: the program
  std::vector<std::string_view> names;  // without those of FlagGroup::kGeneral
};

// Returns the ten flags that people use first, or an empty list if the command has so few flags that --help shows all.
const std::vector<std::string_view>& FirstFlagsOf(std::optional<Command> command) {
  static const std::vector<FirstFlags> kFirst = {
      {std::nullopt,
       {"model", "max-model-len", "system", "preset", "temperature", "max-tokens", "continue", "resume", "json",
        "output"}},
      {Command::kChat,
       {"model", "quantization", "max-model-len", "system", "preset", "continue", "resume", "save", "temperature",
        "max-tokens"}},
      {Command::kRun,
       {"model", "quantization", "system", "preset", "param", "temperature", "max-tokens", "seed", "json", "stats"}},
      {Command::kComplete,
       {"model", "quantization", "temperature", "top-p", "max-tokens", "stop", "seed", "logprobs", "json", "stats"}},
      {Command::kBatch,
       {"model", "preset", "temperature", "max-tokens", "output", "resume", "template", "format", "ordered", "check"}},
      {Command::kBench,
       {"model", "load-format", "quantization", "json", "input-len", "output-len", "batch-size", "num-prompts",
        "compare", "max-num-seqs"}},
      {Command::kPerplexity,
       {"model", "quantization", "dtype", "json", "context", "stride", "kl-reference", "kl-reference-quantization",
        "threads-per-rank"}},
      {Command::kEmbed,
       {"model", "quantization", "jsonl", "output", "overwrite", "pooling", "dimensions", "normalize", "prompt-name",
        "instruction", "whole-files"}},
      {Command::kScore, {"model", "quantization", "jsonl", "prompt-name", "instruction"}},
      {Command::kRerank, {"model", "quantization", "jsonl", "top-n", "prompt-name", "instruction"}},
  };
  static const std::vector<std::string_view> kNone;
  for (const FirstFlags& first : kFirst) {
    if (first.command == command) return first.names;
  }
  return kNone;
}

// Returns the names of the commands that have the flag, or "" if more than `max_count` or all have it.
std::string CommandsOf(const Flag& flag, size_t max_count) {
  std::string names;
  size_t count = 0;
  for (const CommandInfo& info : CommandTable()) {
    if (!flag.belongs_to(info.command)) continue;
    names += (count++ == 0 ? "" : ", ") + std::string(info.name);
  }
  return count > max_count || count == CommandTable().size() ? "" : names;
}

// Appends the flags of a command, or of all commands, by group. If `names` is not empty, appends only these and the
// general ones.
void AppendFlags(std::optional<Command> command, const std::vector<std::string_view>& names, size_t width,
                 std::string& out) {
  for (const FlagGroup group : kFlagGroups) {
    bool titled = false;
    for (const Flag& flag : FlagTable()) {
      if (flag.group != group || (command && !flag.belongs_to(*command))) continue;
      const bool is_named = std::find(names.begin(), names.end(), flag.name) != names.end();
      if (!names.empty() && !is_named && group != FlagGroup::kGeneral) continue;
      if (!titled) out += "\n" + std::string(TitleOf(group)) + ":\n";
      titled = true;
      std::string text(flag.help);
      if (!flag.choices.empty()) text += " (" + std::string(flag.choices) + ")";
      if (flag.repeats) text += "; may be repeated";
      if (!flag.default_value.empty()) text += " [default: " + std::string(flag.default_value) + "]";
      const std::string commands = command ? "" : CommandsOf(flag, names.empty() ? CommandTable().size() : 3);
      if (!commands.empty()) text += " [" + commands + "]";
      AppendEntry(FlagUsage(flag), 36, text, width, out);
    }
  }
}

void AppendExamples(std::string_view examples, std::string& out) {
  if (examples.empty()) return;
  out += "\nExamples:\n  ";
  for (const char c : examples) {
    out += c;
    if (c == '\n') out += "  ";
  }
  out += '\n';
}

constexpr std::string_view kExamples =
    "vllmcli                                                  chat with the bundled guide model\n"
    "vllmcli -m ./SmolLM2-1.7B-Instruct-Q4_K_M.gguf           chat with a GGUF model\n"
    "vllmcli run -m ./model 'Why is the sky blue?'            answer one prompt\n"
    "vllmcli batch prompts.jsonl -m ./model -o out.jsonl      answer a file of prompts";

}  // namespace

std::string VersionText() { return "vllmcli " VLLMCLI_VERSION "\n"; }

std::string FlagUsage(const Flag& flag) {
  std::string usage = flag.short_name != 0 ? std::string("-") + flag.short_name + ", --" : "    --";
  if (flag.kind == ValueKind::kNegatable) usage += "[no-]";
  usage += flag.name;
  if (flag.takes_value()) {
    const std::string value(flag.value_name);
    usage += flag.kind == ValueKind::kOptionalText ? " [" + value + "]" : " " + value;
  }
  return usage;
}

namespace {

std::string ProgramHelp(HelpDetail detail, size_t width) {
  std::string out =
      "vllmcli: chat with language models and run batches of prompts, on CPUs\n\n"
      "Usage: vllmcli [COMMAND] [FLAGS] [ARGUMENTS]\n\n";
  AppendWrapped(
      "Without a command, vllmcli starts a chat if standard input and output are terminals. If not, it answers the "
      "prompt on standard input.",
      0, 0, width, out);
  out += "\nCommands:\n";
  for (const CommandInfo& info : CommandTable()) {
    AppendEntry(std::string(info.name) + (info.arguments.empty() ? "" : " " + std::string(info.arguments)), 30,
                info.summary, width, out);
  }
  const bool is_first = detail == HelpDetail::kFirst;
  AppendFlags(std::nullopt, is_first ? FirstFlagsOf(std::nullopt) : std::vector<std::string_view>(), width, out);
  out += '\n';
  AppendWrapped(
      "vllmcli COMMAND --help explains a command and its most common flags. --help-all shows all flags, with the "
      "environment and the exit status; with COMMAND, those of the command. Most flags can also be set in "
      "$XDG_CONFIG_HOME/vllmcli/config.toml; vllmcli config shows all settings.",
      0, 0, width, out);
  if (!is_first) {
    out +=
        "\nEnvironment:\n"
        "  VLLMCLI_MODEL           the model when -m is not given\n"
        "  VLLMCLI_ISA             the instruction set when --isa is not given\n"
        "  HF_HUB_CACHE, HF_HOME   location of the Hugging Face cache\n"
        "  HF_TOKEN, HF_ENDPOINT   token for the Hugging Face hub, and address of a mirror\n"
        "  HF_HUB_OFFLINE          1: vllmcli pull uses only the cache\n"
        "  VISUAL, EDITOR          the editor for messages (Ctrl-G in a chat) and for vllmcli presets edit\n"
        "  NO_COLOR, TERM=dumb     disable cursor movement\n\n"
        "Exit status:\n"
        "  0              success\n"
        "  1              a request or some rows failed\n"
        "  2              usage or configuration error\n"
        "  3              unusable model or data\n"
        "  4              out of memory, disk or another resource\n"
        "  130, 143, 129  terminated by SIGINT, SIGTERM or SIGHUP\n";
  }
  AppendExamples(kExamples, out);
  return out;
}

}  // namespace

std::string HelpText(std::optional<Command> command, HelpDetail detail, size_t width) {
  if (!command) return ProgramHelp(detail, width);
  const CommandInfo& info = CommandInfoOf(*command);
  const std::string name(info.name);
  std::string out = "Usage: vllmcli " + name + " [FLAGS]";
  if (!info.arguments.empty()) out += " " + std::string(info.arguments);
  out += "\n\n";
  AppendWrapped(info.description, 0, 0, width, out);
  const std::vector<std::string_view>& first = FirstFlagsOf(*command);
  const bool is_first = detail == HelpDetail::kFirst && !first.empty();
  AppendFlags(*command, is_first ? first : std::vector<std::string_view>(), width, out);
  if (is_first) out += "\nThese are the most common flags. vllmcli " + name + " --help-all shows all.\n";
  AppendExamples(info.examples, out);
  return out;
}

}  // namespace vllm::app
