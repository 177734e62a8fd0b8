#include "app/cli/docs/help.h"

#include <string_view>

namespace vllm::app {
namespace {

constexpr size_t kWidth = 100;

// Appends `text`, wrapped at spaces to lines of at most kWidth columns. A word is never broken, so a long one may
// exceed the width. The text starts at `column`; further lines are indented by `indent` spaces.
void AppendWrapped(std::string_view text, size_t indent, size_t column, std::string& out) {
  size_t pos = 0;
  bool first = true;
  while (pos < text.size()) {
    size_t end = text.find(' ', pos);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view word = text.substr(pos, end - pos);
    if (!first && column + 1 + word.size() > kWidth) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
    pos = end + 1;
  }
  out += '\n';
}

void AppendEntry(const std::string& left, size_t indent, std::string_view text, std::string& out) {
  std::string line = "  " + left;
  if (line.size() + 2 > indent) {
    out += line + '\n';
    line.clear();
  }
  line.append(indent - line.size(), ' ');
  out += line;
  AppendWrapped(text, indent, indent, out);
}

void AppendFlags(Command command, std::string& out) {
  for (const FlagGroup group : kFlagGroups) {
    bool titled = false;
    for (const Flag& flag : FlagTable()) {
      if (flag.group != group || !flag.belongs_to(command)) continue;
      if (!titled) out += "\n" + std::string(TitleOf(group)) + ":\n";
      titled = true;
      std::string text(flag.help);
      if (!flag.choices.empty()) text += " (" + std::string(flag.choices) + ")";
      if (flag.repeats) text += "; may be repeated";
      if (!flag.default_value.empty()) text += " [default: " + std::string(flag.default_value) + "]";
      AppendEntry(FlagUsage(flag), 36, text, out);
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

std::string HelpText(std::optional<Command> command) {
  std::string out;
  if (!command) {
    out +=
        "vllmcli: chat with language models and run batches of prompts, on CPUs\n\n"
        "Usage: vllmcli [COMMAND] [FLAGS] [ARGUMENTS]\n\n"
        "Without a command, vllmcli starts a chat if standard input and output are terminals. If not, it answers\n"
        "the prompt on standard input.\n\n"
        "Commands:\n";
    for (const CommandInfo& info : CommandTable()) {
      AppendEntry(std::string(info.name) + (info.arguments.empty() ? "" : " " + std::string(info.arguments)), 30,
                  info.summary, out);
    }
    out +=
        "\nvllmcli COMMAND --help shows the flags of a command; vllmcli --version or -V prints the version. Most\n"
        "flags can also be set in $XDG_CONFIG_HOME/vllmcli/config.toml; vllmcli config shows all settings.\n\n"
        "Environment:\n"
        "  VLLMCLI_MODEL           the model when -m is not given\n"
        "  VLLMCLI_ISA             the instruction set when --isa is not given\n"
        "  HF_HUB_CACHE, HF_HOME   location of the Hugging Face cache\n"
        "  NO_COLOR, TERM=dumb     disable cursor movement\n\n"
        "Exit status:\n"
        "  0              success\n"
        "  1              a request or some rows failed\n"
        "  2              usage or configuration error\n"
        "  3              unusable model or data\n"
        "  4              out of memory, disk or another resource\n"
        "  130, 143, 129  terminated by SIGINT, SIGTERM or SIGHUP\n";
    AppendExamples(kExamples, out);
    return out;
  }
  const CommandInfo& info = CommandInfoOf(*command);
  out += "Usage: vllmcli " + std::string(info.name) + " [FLAGS]";
  if (!info.arguments.empty()) out += " " + std::string(info.arguments);
  out += "\n\n";
  AppendWrapped(info.description, 0, 0, out);
  AppendFlags(*command, out);
  AppendExamples(info.examples, out);
  return out;
}

}  // namespace vllm::app
