#include "app/cli/docs/completions.h"

#include "app/cli/flag.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

std::string Spaced(std::string_view choices) {
  std::string out(choices);
  for (char& c : out) {
    if (c == '|') c = ' ';
  }
  return out;
}

// Returns `text` in single quotes for zsh. Apostrophes, which help texts contain, are written outside the quotes.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string CommandNames() {
  std::string out;
  for (const CommandInfo& info : CommandTable()) out += (out.empty() ? "" : " ") + std::string(info.name);
  return out;
}

// Returns true if the value of the flag is the name of a model.
bool TakesModel(const Flag& flag) { return flag.name == "model" || flag.name == "kl-reference"; }

std::string FlagNames(Command command) {
  std::string out;
  for (const Flag& flag : FlagTable()) {
    if (!flag.belongs_to(command)) continue;
    if (!out.empty()) out += ' ';
    out += "--" + std::string(flag.name);
    if (flag.kind == ValueKind::kNegatable) out += " --no-" + std::string(flag.name);
    if (flag.short_name != 0) out += std::string(" -") + flag.short_name;
  }
  return out;
}

// The functions of the bash script. Names of models can have colons, at which readline splits words: then it replaces
// only the text after the last colon. The word before the cursor is therefore taken from the line.
constexpr std::string_view kBashHead =
    R"bash(# bash completion for vllmcli
_vllmcli_model() {
  # $1: the program; $2: the word so far. Offers installed models and aliases and, unless $3 is set, paths.
  local name
  local -a paths=()
  while IFS= read -r name; do
    [[ $name == "$2"* ]] && COMPREPLY+=("$name")
  done < <("${1/#\~\//$HOME/}" models --names 2>/dev/null)
  [[ -n $3 ]] || mapfile -t paths < <(compgen -f -X '!*.gguf' -- "$2"; compgen -d -- "$2")
  if (( ${#COMPREPLY[@]} == 0 )); then
    compopt -o filenames
    COMPREPLY=("${paths[@]}")
    return
  fi
  for name in "${paths[@]}"; do
    [[ -d $name ]] && name+=/
    COMPREPLY+=("$(printf %q "$name")")
  done
  (( ${#COMPREPLY[@]} == 1 )) && [[ ${COMPREPLY[0]} == */ ]] && compopt -o nospace
  if [[ $2 == *:* && $COMP_WORDBREAKS == *:* ]]; then
    local -i i
    for (( i = 0; i < ${#COMPREPLY[@]}; ++i )); do
      COMPREPLY[i]=${COMPREPLY[i]#"${2%"${2##*:}"}"}
    done
  fi
}
_vllmcli() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local line=${COMP_LINE:0:COMP_POINT} command=
  local typed=${line##*[[:space:]]}
  if [[ $typed == --model=* ]]; then
    typed=${typed#--model=}
    previous=--model
  elif [[ $typed == *:* ]]; then
    line=${line%"$typed"}
    line=${line%"${line##*[![:space:]]}"}
    previous=${line##*[[:space:]]}
  fi
  (( COMP_CWORD > 1 )) && [[ ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}
  COMPREPLY=()
  case $previous in
)bash";

// Returns the lines of the bash script that complete the arguments of a command.
std::string BashArguments(const CommandInfo& info) {
  const std::string choices = "COMPREPLY=($(compgen -W '" + Spaced(info.choices) + "' -- \"$current\"))\n";
  const std::string model = "        _vllmcli_model \"$1\" \"$typed\"";
  if (info.operands == OperandKind::kModel && !info.choices.empty()) {
    return "      elif (( COMP_CWORD == 2 )); then\n        " + choices + "      else\n" + model + " names\n";
  }
  if (info.operands == OperandKind::kModel) return "      else\n" + model + "\n";
  if (!info.choices.empty()) return "      else\n        " + choices;
  if (info.operands != OperandKind::kFile) return "";
  return "      else\n        compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))\n";
}

std::string Bash() {
  std::string out(kBashHead);
  for (const Flag& flag : FlagTable()) {
    if (!flag.takes_value()) continue;
    std::string pattern = "--" + std::string(flag.name);
    if (flag.short_name != 0) pattern += std::string("|-") + flag.short_name;
    if (flag.kind == ValueKind::kChoice) {
      out +=
          "    " + pattern + ") COMPREPLY=($(compgen -W '" + Spaced(flag.choices) + "' -- \"$current\")); return ;;\n";
    } else if (flag.kind == ValueKind::kPath) {
      out += "    " + pattern + ") compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n";
    } else if (TakesModel(flag)) {
      out += "    " + pattern + ") _vllmcli_model \"$1\" \"$typed\"; return ;;\n";
    } else {
      out += "    " + pattern + ") return ;;\n";
    }
  }
  out +=
      "  esac\n"
      "  if (( COMP_CWORD == 1 )) && [[ $current != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      CommandNames() +
      "' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  if [[ -z $command ]]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      FlagNames(Command::kChat) +
      "' -- \"$current\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n";
  for (const CommandInfo& info : CommandTable()) {
    out += "    " + std::string(info.name) + ")\n";
    out += "      if [[ $current == -* ]]; then\n        COMPREPLY=($(compgen -W '" + FlagNames(info.command) +
           "' -- \"$current\"))\n";
    out += BashArguments(info) + "      fi ;;\n";
  }
  out +=
      "  esac\n"
      "}\n"
      "complete -F _vllmcli vllmcli\n";
  return out;
}

// Escapes `text` for a zsh _arguments specification, where brackets and colons are delimiters.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const Flag& flag) {
  if (!flag.takes_value()) return "";
  std::string action = ":" + std::string(flag.value_name) + ":";
  if (flag.kind == ValueKind::kChoice) return action + "(" + Spaced(flag.choices) + ")";
  if (flag.kind == ValueKind::kPath) return action + "_files";
  if (TakesModel(flag)) return action + "_vllmcli_models";
  return action;
}

std::string Zsh() {
  std::string out =
      "#compdef vllmcli\n"
      "# zsh completion for vllmcli\n"
      "_vllmcli_models() {\n"
      "  local -a names\n"
      "  names=(${(f)\"$(\"$vllmcli_program\" models --names 2>/dev/null)\"})\n"
      "  compadd -a names\n"
      "  _files -g '*.gguf(-.)'\n"
      "}\n"
      "_vllmcli() {\n"
      "  local vllmcli_program=${${(Q)words[1]}/#\\~\\//$HOME/}\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CommandInfo& info : CommandTable()) {
    out += "    " + Quoted(std::string(info.name) + ":" + std::string(info.summary)) + "\n";
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  if [[ $command == -* ]]; then\n"
      "    command=chat\n"
      "  else\n"
      "    shift words\n"
      "    (( CURRENT-- ))\n"
      "  fi\n"
      "  case $command in\n";
  for (const CommandInfo& info : CommandTable()) {
    out += "    " + std::string(info.name) + ")\n      _arguments -s";
    for (const Flag& flag : FlagTable()) {
      if (!flag.belongs_to(info.command)) continue;
      const std::string text = "[" + ZshText(flag.help) + "]" + ZshAction(flag);
      const std::string repeat = flag.repeats ? "*" : "";
      const char* attached = flag.takes_value() ? "=" : "";
      out += " \\\n        " + Quoted(repeat + "--" + std::string(flag.name) + attached + text);
      if (flag.kind == ValueKind::kNegatable) {
        out += " \\\n        " + Quoted("--no-" + std::string(flag.name) + text);
      }
      if (flag.short_name != 0) {
        const char* joined = flag.takes_value() ? "+" : "";
        out += " \\\n        " + Quoted(repeat + "-" + std::string(1, flag.short_name) + joined + text);
      }
    }
    if (!info.choices.empty()) out += " \\\n        " + Quoted("1:argument:(" + Spaced(info.choices) + ")");
    if (info.operands == OperandKind::kModel) {
      out += " \\\n        '*:model:_vllmcli_models'";
    } else if (info.operands == OperandKind::kFile && info.choices.empty()) {
      out += " \\\n        '*:file:_files'";
    }
    out += " ;;\n";
  }
  out +=
      "  esac\n"
      "}\n"
      "_vllmcli \"$@\"\n";
  return out;
}

// Returns `text` in single quotes for fish, where only ' and \ are special and a backslash escapes both.
std::string FishQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

constexpr char kFishModels[] = "'(vllmcli models --names 2>/dev/null)'";

std::string Fish() {
  std::string out = "# fish completion for vllmcli\ncomplete -c vllmcli -f\n";
  for (const CommandInfo& info : CommandTable()) {
    out += "complete -c vllmcli -n __fish_use_subcommand -a " + std::string(info.name) + " -d " +
           FishQuoted(info.summary) + "\n";
  }
  out += "complete -c vllmcli -n __fish_use_subcommand -s V -l version -d 'print the version'\n";
  for (const CommandInfo& info : CommandTable()) {
    const std::string head = "complete -c vllmcli -n '__fish_seen_subcommand_from " + std::string(info.name) + "'";
    const std::string seen = "__fish_seen_subcommand_from " + Spaced(info.choices);
    if (info.operands == OperandKind::kModel && !info.choices.empty()) {
      out += "complete -c vllmcli -n '__fish_seen_subcommand_from " + std::string(info.name) + "; and not " + seen +
             "' -a '" + Spaced(info.choices) + "'\n";
      out += "complete -c vllmcli -n '__fish_seen_subcommand_from " + std::string(info.name) + "; and " + seen +
             "' -a " + kFishModels + "\n";
    } else if (!info.choices.empty()) {
      out += head + " -a '" + Spaced(info.choices) + "'\n";
    } else if (info.operands == OperandKind::kModel) {
      out += head + " -a " + kFishModels + "\n";
    }
    if (info.operands == OperandKind::kFile) out += head + " -F\n";
    for (const Flag& flag : FlagTable()) {
      if (!flag.belongs_to(info.command)) continue;
      out += head;
      if (flag.short_name != 0) out += std::string(" -s ") + flag.short_name;
      out += " -l " + std::string(flag.name);
      if (flag.kind == ValueKind::kChoice) {
        out += " -x -a '" + Spaced(flag.choices) + "'";
      } else if (TakesModel(flag)) {
        out += std::string(" -r -F -a ") + kFishModels;
      } else if (flag.kind == ValueKind::kPath) {
        out += " -r -F";
      } else if (flag.takes_value()) {
        out += " -x";
      }
      out += " -d " + FishQuoted(flag.help) + "\n";
      if (flag.kind == ValueKind::kNegatable) {
        out += head + " -l no-" + std::string(flag.name) + " -d " + FishQuoted("disable: " + std::string(flag.help)) +
               "\n";
      }
    }
  }
  return out;
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") return Bash();
  if (shell == "zsh") return Zsh();
  if (shell == "fish") return Fish();
  throw ConfigError("completions: the shell must be bash, zsh or fish (" + std::string(shell) + ")");
}

}  // namespace vllm::app
