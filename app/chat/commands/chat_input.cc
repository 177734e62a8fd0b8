#include "app/chat/commands/chat_input.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "app/attachments/attached_files.h"
#include "app/chat/commands/slash_commands.h"
#include "app/cli/flag.h"
#include "app/cli/slash_command_table.h"
#include "app/editor/command_completer.h"
#include "app/editor/path_completion.h"
#include "app/installed/list_models.h"
#include "app/installed/model_aliases.h"
#include "app/output/list_text.h"
#include "app/output/size_text.h"
#include "app/presets/preset_store.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/lora/lora_adapter.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

// The kinds of arguments.
enum class ArgumentKind {
  kPath,
  kNumberAndPath,
  kModel,
  kConversation,
  kSetting,
  kChangedSetting,
  kCommand,
  kThinking,
  kPreset,
  kLoRA
};

// The commands whose argument Tab completes. Their aliases are in SlashCommandTable().
constexpr std::pair<std::string_view, ArgumentKind> kArgumentKinds[] = {
    {"/help", ArgumentKind::kCommand},
    {"/resume", ArgumentKind::kConversation},
    {"/file", ArgumentKind::kPath},
    {"/schema", ArgumentKind::kPath},
    {"/export", ArgumentKind::kPath},
    {"/save-code", ArgumentKind::kNumberAndPath},
    {"/model", ArgumentKind::kModel},
    {"/set", ArgumentKind::kSetting},
    {"/regen", ArgumentKind::kChangedSetting},
    {"/think", ArgumentKind::kThinking},
    {"/preset", ArgumentKind::kPreset},
    {"/lora", ArgumentKind::kLoRA},
};

AttachmentLimits LimitsOf(const ChatSession& session) {
  return {session.model().tokenizer.get(), session.model().engine->max_model_len()};
}

bool IsPlain(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

std::vector<CompletionChoice> CommandChoices() {
  std::vector<CompletionChoice> choices;
  for (const CommandCompleter::Command& command : SlashCommandDescriptions()) {
    if (!command.is_alias) choices.push_back({command.name, command.description});
  }
  return choices;
}

std::vector<CompletionChoice> SettingChoices(const std::string& end) {
  std::vector<CompletionChoice> choices;
  for (const std::string& name : SettableNames()) {
    const Flag* flag = FindFlag(name);
    choices.push_back({name + end, flag == nullptr ? "" : std::string(flag->help), end.empty()});
  }
  return choices;
}

std::vector<CompletionChoice> ModelChoices() {
  std::vector<CompletionChoice> choices;
  for (const InstalledModel& model : ListModels()) {
    if (model.problem.empty()) choices.push_back({model.location.name, model.location.origin});
  }
  try {
    for (const ModelAlias& alias : ReadModelAliases()) choices.push_back({alias.name, alias.target});
  } catch (const ConfigError&) {
    // /model reports the invalid file.
  }
  return choices;
}

std::vector<CompletionChoice> PresetChoices() {
  std::vector<CompletionChoice> choices = {{"off", "no preset"}};
  for (const PresetSummary& preset : ListPresets()) choices.push_back({preset.name, SummaryText(preset)});
  return choices;
}

// Offers the adapters, or after NAME= files.
std::vector<CompletionChoice> LoRAChoices(const std::string& typed, const ChatSession& session) {
  if (const size_t equals = typed.find('='); equals != std::string::npos) {
    std::vector<CompletionChoice> choices = PathChoices(std::string_view(typed).substr(equals + 1));
    for (CompletionChoice& choice : choices) choice.text.insert(0, typed, 0, equals + 1);
    return choices;
  }
  std::vector<CompletionChoice> choices = {{"off", "the base model"}};
  for (const auto& adapter : NamedAdapters(session.model().engine->config().lora.adapters)) {
    choices.push_back({adapter->name, adapter->path});
  }
  return choices;
}

// Offers the numbers of conversations with their titles or, after a letter, the titles.
std::vector<CompletionChoice> ConversationChoices(ChatSession& session, const std::string& typed) {
  constexpr int64_t kMaxConversations = 200;
  std::vector<CompletionChoice> choices;
  if (session.store() == nullptr) return choices;
  const bool by_number = std::all_of(typed.begin(), typed.end(), [](char c) { return c >= '0' && c <= '9'; });
  for (const ChatSummary& chat : session.store()->List(kMaxConversations)) {
    if (by_number) {
      choices.push_back({std::to_string(chat.id), FirstLine(chat.title, 60)});
    } else if (IsPlain(chat.title)) {
      choices.push_back({chat.title, ""});
    }
  }
  return choices;
}

// Offers files for the second word of `typed`.
std::vector<CompletionChoice> NumberAndPathChoices(const std::string& typed) {
  const size_t gap = typed.find_first_of(" \t");
  if (gap == std::string::npos) return {};
  const size_t path = std::min(typed.find_first_not_of(" \t", gap), typed.size());
  std::vector<CompletionChoice> choices = PathChoices(std::string_view(typed).substr(path));
  for (CompletionChoice& choice : choices) choice.text.insert(0, typed, 0, path);
  return choices;
}

std::vector<CompletionChoice> ChoicesOf(ArgumentKind kind, const std::string& typed, ChatSession& session) {
  const size_t last_blank = typed.find_last_of(" \t");
  const bool is_first_word = last_blank == std::string::npos;
  switch (kind) {
    case ArgumentKind::kPath:
      return PathChoices(typed);
    case ArgumentKind::kNumberAndPath:
      return NumberAndPathChoices(typed);
    case ArgumentKind::kModel:
      return ModelChoices();
    case ArgumentKind::kConversation:
      return ConversationChoices(session, typed);
    case ArgumentKind::kCommand:
      return CommandChoices();
    case ArgumentKind::kSetting:
      return is_first_word ? SettingChoices("") : std::vector<CompletionChoice>();
    case ArgumentKind::kThinking:
      return {{"on", ""}, {"off", ""}, {"low", ""}, {"medium", ""}, {"high", ""}};
    case ArgumentKind::kPreset:
      return is_first_word ? PresetChoices() : std::vector<CompletionChoice>();
    case ArgumentKind::kLoRA:
      return LoRAChoices(typed, session);
    case ArgumentKind::kChangedSetting:
      break;
  }
  // NAME=VALUE may be repeated.
  std::vector<CompletionChoice> choices = SettingChoices("=");
  for (CompletionChoice& choice : choices) {
    if (!is_first_word) choice.text.insert(0, typed, 0, last_blank + 1);
  }
  return choices;
}

std::string SizeNote(const AttachedFile& file) { return file.name + ": " + CountedText(file.num_tokens, "token"); }

}  // namespace

SlashResult FileCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintError("/file: name a file; /file PATH puts it into the next message");
    return {};
  }
  // A path with blanks may be typed with or without backslashes.
  const std::string unescaped = UnescapePath(arguments);
  AttachedFile file;
  try {
    file = ReadAttachedFile(unescaped, LimitsOf(session));
  } catch (const ConfigError&) {
    if (unescaped == arguments) throw;
    file = ReadAttachedFile(arguments, LimitsOf(session));
  }
  PrintNote("[" + SizeNote(file) + "; type the message that it belongs to]");
  return {.quits = false, .draft = "@" + EscapePath(file.name) + " "};
}

std::optional<std::string> MessageWithFiles(const std::string& text, const ChatSession& session) {
  if (text.find('@') == std::string::npos) return text;
  try {
    ExpandedMessage message = ExpandFileReferences(text, LimitsOf(session));
    for (const AttachedFile& file : message.files) PrintStatus("[" + SizeNote(file) + "]");
    for (const std::string& name : message.missing) {
      PrintStatus("[@" + name + " is not a file, so it is sent as text]");
    }
    return std::move(message.text);
  } catch (const ConfigError& error) {
    PrintError(error.what());
  } catch (const tokenizer::EncodingStopped&) {
    TakeInterrupt();
    PrintNote("[interrupted: the message was not sent]");
  }
  return std::nullopt;
}

Completer ChatCompleter(ChatSession& session) {
  CommandCompleter completer(SlashCommandDescriptions());
  for (const auto& [name, kind] : kArgumentKinds) {
    const auto provider = [kind = kind, &session](const std::string& typed) { return ChoicesOf(kind, typed, session); };
    for (const std::string& spelling : NamesOf(*FindSlashCommand(name))) completer.Provide(spelling, provider);
  }
  return completer;
}

}  // namespace vllm::app
