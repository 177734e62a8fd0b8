#include "app/cli/docs/man_page.h"

#include <string_view>

#include "app/cli/flag.h"
#include "app/cli/slash_command_table.h"

namespace vllm::app {
namespace {

// Escapes `text` for roff: backslashes, dashes and apostrophes, and a leading dot, which would begin a request.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  if (!out.empty() && out.front() == '.') out.insert(0, "\\&");
  return out;
}

void AppendFlag(const Flag& flag, std::string& out) {
  out += ".TP\n";
  if (flag.short_name != 0) out += ".BR \\-" + std::string(1, flag.short_name) + " \", \" ";
  if (flag.short_name == 0) out += ".BR ";
  std::string name = "\\-\\-";
  if (flag.kind == ValueKind::kNegatable) name += "[no\\-]";
  name += Roff(flag.name);
  out += name;
  if (flag.takes_value()) {
    const bool is_optional = flag.kind == ValueKind::kOptionalText;
    out += is_optional ? " \" [\\fI" : " \" \\fI";
    out += std::string(flag.value_name) + (is_optional ? "\\fR]\"" : "\\fR\"");
  }
  out += "\n" + Roff(flag.help);
  if (!flag.choices.empty()) out += " (" + Roff(flag.choices) + ")";
  out += ".";
  if (flag.repeats) out += " May be repeated.";
  if (!flag.default_value.empty()) out += " Default: " + Roff(flag.default_value) + ".";
  std::string commands;
  size_t num_commands = 0;
  for (const CommandInfo& info : CommandTable()) {
    if (!flag.belongs_to(info.command)) continue;
    commands += (commands.empty() ? "" : ", ") + std::string(info.name);
    ++num_commands;
  }
  if (num_commands < CommandTable().size()) out += "\nCommands: " + commands + ".";
  out += "\n";
}

constexpr std::string_view kBatchSection =
    R"(.SH BATCH FILES
A row of a .jsonl file is an object with one of
.BR prompt " (a string or a list of token ids),"
.BR prompt_token_ids " (a list of token ids) or"
.BR messages " (a list of objects with role and content),"
and optionally sampling fields under their vLLM names (max_tokens, temperature, stop, seed, n, logprobs, ...), which
apply to this row only, and
.BR custom_id ", " priority ", " cache_salt ", " lora ", " add_special_tokens ", " tools ", " add_generation_prompt " and"
.BR chat_template_kwargs .
A row with an unknown field fails. Rows with
.BR method ", " url " and " body
are rows of the OpenAI batch API for /v1/chat/completions, /v1/completions, /v1/embeddings and /v1/rerank; their records are in that API's format.
.PP
A record identifies its row by custom_id, or by the row's index, which starts at 0:
.PP
.nf
{"index":0,"prompt_tokens":5,"outputs":[{"index":0,"text":" ...","token_ids":[...],
 "finish_reason":"stop","stop_reason":null,"logprobs":null,"cumulative_logprob":null}]}
{"index":1,"error":{"code":"invalid_json","message":"...","line":2}}
.fi
.PP
A row with a temperature above 0 and no seed gets a seed that depends only on \-\-seed and the row's custom_id or index.
Its record therefore does not depend on the other rows or on scheduling.
)";

constexpr std::string_view kSamplingSection =
    R"(.SH SAMPLING DEFAULTS
Each sampling parameter is taken from the first of these sources that sets it:
.IP 1. 3
the fields of a batch row;
.IP 2.
flags, the chat commands /set and /regen, a preset, and the configuration file;
.IP 3.
the model's own file: generation_config.json of a directory (do_sample false means temperature 0), or the keys
general.sampling.temp, top_k, top_p, min_p and penalty_repeat of a GGUF file;
.IP 4.
llama.cpp's defaults if the model sets no sampling parameter: temperature 0.8, top\-k 40, top\-p 0.95, min\-p 0.05.
.PP
If a model sets some parameters, the others are neutral (temperature 1, no top\-k, top\-p, min\-p or penalty).
With
.B \-\-generation\-config vllm
the model's file is ignored and the defaults are neutral, as in vLLM's API without a generation config.
.BR "vllmcli show" ,
the JSON output of run and complete, and /set print the values in effect and their sources.
.B bench
ignores these sources and samples at temperature 1.
)";

constexpr std::string_view kChatSection =
    R"(.PP
A line that begins with // sends a message that begins with a slash.
.PP
Alt\-Enter, Ctrl\-J, or a backslash before Enter begins a new line. Lines between two \(dq\(dq\(dq are one message, and so
is pasted text, unless TERM=dumb is set. Ctrl\-G opens the message in an editor ($VISUAL or $EDITOR). Tab completes
commands, their arguments and, after @, the names of files; @FILE in a message puts the text of the file into it. Esc
Esc on an empty line changes the last question.
.PP
Ctrl\-C stops an answer and keeps the text so far. At the prompt, Ctrl\-C clears the message, which the Up key brings
back, or, if the line is empty, shows how to quit; it also cancels /edit. Ctrl\-C again within a second quits. Ctrl\-D on an
empty line quits. Ctrl\-Z suspends the program.
.PP
When the context is full, the oldest turns are left out of the prompt, so that the other turns fill at most half of the
space that the system message and the new message leave. The system message is kept. The chat says how many turns it has
left out. One large cut keeps the KV cache useful: the next turns extend the shorter prompt, while dropping one turn at
a time would change the beginning of every prompt. With
.B \-\-context\-shift off
the message is not sent; /new begins a new conversation, and /undo takes back turns.
)";

constexpr std::string_view kPresetSection =
    R"(.SH PRESETS
A preset is a TOML file, $XDG_CONFIG_HOME/vllmcli/presets/NAME.toml, or one of those that ship with the program:
.PP
.nf
description = "translate text"
system = "You are a translator."
prompt = """
Translate into {language}:

{input}"""
model = "OWNER/NAME"
temperature = 0.2
[variables]
language = "English"
.fi
.PP
All keys are optional, and any sampling flag of the configuration file is a key. {input} is the prompt of
.BR run ,
a message of
.B chat
or the text of a row of
.BR batch .
The other names are variables of
.B system
and
.BR prompt :
\-p NAME=VALUE sets one, the table variables has defaults, and in a .csv or .tsv file the columns are variables of the
prompt too. From the highest precedence to the lowest: \-p, a column, the table. A variable without a value is an error.
Write {{ and }} for literal braces.
.PP
If the prompt does not contain {input}, run and batch append the text to it, and chat does not use it: there, it would
be repeated with each message. The system message begins each new conversation; a stored conversation keeps its own.
With a preset, a row {"prompt"} of a .jsonl file goes through the preset's prompt and the chat template too; rows with
messages or token ids and rows of the OpenAI batch API keep their prompts.
.PP
Flags override the preset, and so does /set. The preset overrides the environment and the configuration file: it is
chosen for one task, and these hold for all.
)";

constexpr std::string_view kLastSections =
    R"(.SH OUTPUT
Standard output carries only results; everything else goes to standard error. A control character in text from a model
or a file, except a tab or a line break, is shown as its hexadecimal code, such as <1b> (in JSON as \eu001b), and never
sent to the terminal.
.SH EXIT STATUS
.TP
.B 0
success, even if the reader of the output closed the pipe early
.TP
.B 1
a request, some rows, or a chats or presets command failed, or chats search found nothing
.TP
.B 2
usage or configuration error
.TP
.B 3
unusable model or data
.TP
.B 4
out of memory, disk or another resource
.TP
.B 130, 143, 129
terminated by SIGINT, SIGTERM or SIGHUP
.SH ENVIRONMENT
.TP
.B VLLMCLI_MODEL
the model if \-m is not given
.TP
.B VLLMCLI_ISA
the instruction set of the kernels if \-\-isa is not given
.TP
.BR HF_HUB_CACHE ", " HF_HOME
location of the Hugging Face cache: $HF_HUB_CACHE, or else $HF_HOME/hub, or else $XDG_CACHE_HOME/huggingface/hub,
where $XDG_CACHE_HOME defaults to ~/.cache
.TP
.BR HF_TOKEN ", " HF_TOKEN_PATH
the token for private and gated models of the Hugging Face hub, or the path of a file with it; default: $HF_HOME/token
.TP
.B HF_ENDPOINT
the address of a mirror of the Hugging Face hub
.TP
.B HF_HUB_OFFLINE
1: pull uses only the cache
.TP
.BR HF_HUB_ETAG_TIMEOUT ", " HF_HUB_DOWNLOAD_TIMEOUT
seconds after which pull gives up a request without an answer, or a transfer at a standstill; default: 10
.TP
.BR https_proxy ", " http_proxy ", " no_proxy
the proxies that pull uses
.TP
.BR CURL_CA_BUNDLE ", " REQUESTS_CA_BUNDLE ", " SSL_CERT_FILE
a file with the certificate authorities that pull trusts instead of those of the system
.TP
.BR VISUAL ", " EDITOR
the editor that vllmcli presets edit starts
.TP
.BR NO_COLOR ", " TERM=dumb
disable cursor movement on the terminal; with NO_COLOR, only while a message is typed is the cursor moved
.SH FILES
.TP
.I $XDG_CONFIG_HOME/vllmcli/config.toml
default values of flags, by their long names; at the top for all commands, in a table such as [batch] for one command
.TP
.I $XDG_CONFIG_HOME/vllmcli/presets/NAME.toml
presets; .NAME.draft.toml is a text that vllmcli presets edit could not accept
.TP
.I $XDG_CONFIG_HOME/vllmcli/model\-aliases.toml
aliases of models, which vllmcli models alias writes
.TP
.I $XDG_STATE_HOME/vllmcli/last\-use
empty files whose modification times say when each installed model was last loaded, unless \-\-ephemeral is set
.TP
.I $XDG_STATE_HOME/vllmcli/history
lines typed in the chat, unless \-\-no\-save is set
.TP
.I $XDG_DATA_HOME/vllmcli/chats.db
stored conversations, an SQLite database; chats.lock and, while the database is in use, chats.db\-wal, chats.db\-shm or
chats.db\-journal are in the same directory
.TP
.I $XDG_DATA_HOME/vllmcli/models
models that \-m finds by name
)";

void AppendSlashCommands(std::string& out) {
  out += ".SH CHAT COMMANDS\n";
  for (const SlashCommandInfo& command : SlashCommandTable()) {
    std::string names;
    for (const std::string& name : NamesOf(command)) {
      names += (names.empty() ? "\\fB" : ", \\fB") + Roff(name) + "\\fR";
    }
    if (!command.arguments.empty()) names += " " + Roff(command.arguments);
    out += ".TP\n" + names + "\n" + Roff(command.help) + "\n";
  }
}

}  // namespace

std::string ManPage() {
  std::string out;
  out += ".TH VLLMCLI 1 \"\" \"vllmcli " VLLMCLI_VERSION "\" \"User Commands\"\n";
  out += ".SH NAME\nvllmcli \\- chat with language models and run batches of prompts, on CPUs\n";
  out += ".SH SYNOPSIS\n.B vllmcli\n[\\fICOMMAND\\fR] [\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n";
  out +=
      ".SH DESCRIPTION\nRuns a language model from a Hugging Face model directory or a GGUF file on the CPU, "
      "without a server. Without a command, vllmcli starts a chat if standard input and output are terminals. If not, "
      "it works like\n.B run\nwith the prompt on standard input.\n";
  out += ".SH COMMANDS\n";
  for (const CommandInfo& info : CommandTable()) {
    out += ".TP\n.B " + std::string(info.name);
    if (!info.arguments.empty()) out += " \\fR" + Roff(info.arguments);
    out += "\n" + Roff(info.description) + "\n";
  }
  out += ".SH FLAGS\n";
  for (const FlagGroup group : kFlagGroups) {
    out += ".SS " + std::string(TitleOf(group)) + "\n";
    for (const Flag& flag : FlagTable()) {
      if (flag.group == group) AppendFlag(flag, out);
    }
  }
  out += kBatchSection;
  out += kSamplingSection;
  AppendSlashCommands(out);
  out += kChatSection;
  out += kPresetSection;
  out += kLastSections;
  out += ".SH EXAMPLES\n.nf\n";
  for (const CommandInfo& info : CommandTable()) {
    if (!info.examples.empty()) out += Roff(info.examples) + "\n";
  }
  out += ".fi\n";
  out +=
      ".SH LICENSE\nThe source is under the Apache License 2.0. The program links GNU Readline, so a distributed "
      "binary is under the GNU General Public License, version 3 or later.\n";
  return out;
}

}  // namespace vllm::app
