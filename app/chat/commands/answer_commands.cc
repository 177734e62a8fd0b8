#include "app/chat/commands/answer_commands.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/chat/commands/conversation_commands.h"
#include "app/chats/code_blocks.h"
#include "app/chats/tree_rows.h"
#include "app/cli/xdg.h"
#include "app/editor/path_completion.h"
#include "app/installed/list_models.h"
#include "app/installed/model_aliases.h"
#include "app/output/list_text.h"
#include "app/output/size_text.h"
#include "app/pickers/chat_pickers.h"
#include "app/terminal/clipboard.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

// Returns the last answer up to the current message. Throws ConfigError if there is none.
const StoredMessage& LastAnswer(const ChatSession& session) {
  const StoredMessage* answer = FindLastAnswer(session);
  if (answer == nullptr) throw ConfigError("there is no answer");
  return *answer;
}

std::string SeedText(const StoredMessage& answer) {
  const auto params = nlohmann::json::parse(answer.sampling_params, nullptr, /*allow_exceptions=*/false);
  if (!params.is_object() || !params.contains("seed") || !params["seed"].is_number_integer()) return "";
  return ", seed " + params["seed"].dump();
}

void ListAnswers(const ChatSession& session) {
  const std::vector<const StoredMessage*> answers = session.Answers();
  if (answers.empty()) PrintNote("[this question has no answer; /answers N generates N]");
  const std::vector<const StoredMessage*> path = session.tree().PathTo(session.tree().current_id());
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool is_current = std::find(path.begin(), path.end(), answers[i]) != path.end();
    PrintNote((is_current ? "* " : "  ") + std::to_string(i + 1) + "  " + FirstLine(answers[i]->text, 50) + "  (" +
              std::to_string(answers[i]->token_ids.size()) + " tokens" + SeedText(*answers[i]) + ")");
  }
  if (answers.size() > 1) PrintNote("/pick N continues with one of them.");
}

// Returns code block `number` of the last answer. Prints the blocks there are and returns nullopt if it is not one of
// them.
std::optional<CodeBlock> FindBlock(const std::string& number, const ChatSession& session) {
  std::vector<CodeBlock> blocks = FindCodeBlocks(LastAnswer(session).text);
  const std::optional<int64_t> k = PositiveNumber(number, 0);
  if (k && *k >= 1 && *k <= static_cast<int64_t>(blocks.size())) return std::move(blocks[static_cast<size_t>(*k - 1)]);
  if (blocks.empty()) {
    PrintError("the last answer has no code block");
    return std::nullopt;
  }
  PrintError("there is no code block " + number + "; the last answer has:");
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string& language = blocks[i].language;
    const auto num_lines = std::count(blocks[i].text.begin(), blocks[i].text.end(), '\n');
    PrintNote("  " + std::to_string(i + 1) + "  " + (language.empty() ? "" : FirstLine(language, 20) + ", ") +
              CountedText(num_lines, "line") + ": " + FirstLine(blocks[i].text, 50));
  }
  return std::nullopt;
}

void ListInstalledModels(const ChatSession& session) {
  const ModelLocation& current = session.model().location;
  bool is_listed = false;
  for (const InstalledModel& model : ListModels()) {
    const ModelLocation& location = model.location;
    const bool is_current = location.path() == current.path();
    is_listed = is_listed || is_current;
    PrintNote((is_current ? "* " : "  ") + location.name + "  " + SizeText(model.bytes) + "  " +
              (model.problem.empty() ? location.origin : model.problem));
  }
  if (!is_listed) PrintNote("* " + current.name + "  " + SizeText(ModelBytes(current)) + "  " + current.origin);
  for (const ModelAlias& alias : ReadModelAliases()) PrintNote("  " + alias.name + "  is " + alias.target);
  PrintNote("/model NAME switches; NAME may also be a model directory or a .gguf file.");
}

}  // namespace

const StoredMessage* FindLastAnswer(const ChatSession& session) {
  const StoredMessage* message = session.tree().current();
  while (message != nullptr && message->role != ChatRole::kAssistant) message = session.tree().Find(message->parent);
  return message;
}

SlashResult AnswersCommand(const std::string& arguments, ChatSession& session) {
  std::vector<std::string> words = SplitWords(arguments);
  if (words.empty()) {
    ListAnswers(session);
    return {};
  }
  const std::optional<int64_t> count = PositiveNumber(words[0], 0);
  if (!count || *count > ChatSession::kMaxAnswersAtOnce) {
    PrintError("/answers " + words[0] + ": not a number of answers (1 to " +
               std::to_string(ChatSession::kMaxAnswersAtOnce) + ")");
    return {};
  }
  words.erase(words.begin());
  const auto changes = ParseChanges("/answers N", words);
  if (!changes) return {};
  const int64_t first = session.AnswerSeveralTimes(*count, *changes);
  if (first == 0) return {};
  PrintStatus("[answer " + std::to_string(first) + " of " + std::to_string(session.Answers().size()) +
              " is the current one; /pick N chooses another, /answers lists them]");
  return {};
}

SlashResult PickCommand(const std::string& arguments, ChatSession& session) {
  const std::optional<int64_t> number = arguments.empty() ? std::nullopt : PositiveNumber(arguments, 0);
  if (number && session.PickAnswer(*number)) {
    PrintNote("[answer " + std::to_string(*number) + " of " + std::to_string(session.Answers().size()) +
              " is the current one]");
    return {};
  }
  if (!arguments.empty()) PrintError("there is no answer " + arguments);
  ListAnswers(session);
  return {};
}

SlashResult CopyCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintNote("[" + CopyToClipboard(LastAnswer(session).text) + "]");
  } else if (const std::optional<CodeBlock> block = FindBlock(arguments, session)) {
    PrintNote("[code block " + arguments + ": " + CopyToClipboard(block->text) + "]");
  }
  return {};
}

SlashResult SaveCodeCommand(const std::string& arguments, ChatSession& session) {
  const size_t gap = arguments.find_first_of(" \t");
  const std::string file =
      gap == std::string::npos ? "" : TypedPath(arguments.substr(arguments.find_first_not_of(" \t", gap)));
  if (file.empty()) {
    PrintError("/save-code: expects a number and a file; for example, /save-code 1 hello.py");
    return {};
  }
  if (const std::optional<CodeBlock> block = FindBlock(arguments.substr(0, gap), session)) {
    WriteNewFile(file, block->text);
    PrintNote("[written to " + file + "]");
  }
  return {};
}

SlashResult TreeCommand(const std::string&, ChatSession& session) {
  const ChatTree& tree = session.tree();
  if (tree.empty()) {
    PrintNote("[the conversation is empty]");
    return {};
  }
  if (!CanPick()) {
    for (const TreeRow& row : TreeRows(tree, /*uses_utf8=*/true)) {
      PrintNote((row.is_current ? "* " : "  ") + row.branch + FirstLine(row.text, 100));
    }
    return {};
  }
  const std::optional<int64_t> id = PickMessage(tree, *session.model().engine, session.model().background);
  if (!id) return {};
  std::optional<std::string> question = session.GoTo(*id);
  PrintConversation(session);
  if (!question) return {};
  PrintNote("[the next message replaces this question in a new branch]");
  return {.quits = false, .draft = DraftOf(*std::move(question))};
}

SlashResult DeleteCommand(const std::string& arguments, ChatSession& session) {
  if (session.tree().empty()) {
    PrintNote("[the conversation is empty]");
    return {};
  }
  const int64_t id = session.tree().chat_id();
  const std::string name = id == 0 ? "this conversation" : "conversation " + std::to_string(id);
  if (arguments != "yes") {
    PrintNote("[/delete yes deletes " + name + " with all its branches (" +
              std::to_string(session.tree().AllMessages().size()) + " messages) permanently]");
    return {};
  }
  const bool is_erased = session.Delete();
  PrintNote("[" + name + " deleted]");
  if (!is_erased) {
    PrintWarning("other programs use the database, so the deleted text remains in " + session.store()->path() +
                 "-wal until they end");
  }
  return {};
}

SlashResult ModelCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    ListInstalledModels(session);
    return {};
  }
  const std::string before = session.model().location.path();
  try {
    session.SwitchModel(arguments);
  } catch (const ModelError& error) {
    PrintError(error.what(), error.hint());
  } catch (const tokenizer::TokenizerError& error) {
    PrintError(error.what());
  } catch (const tokenizer::ChatTemplateError& error) {
    PrintError(error.what());
  }
  if (session.model().location.path() == before) return {};
  PrintNote("[" + session.model().location.short_name() + ", context " +
            std::to_string(session.model().engine->max_model_len()) + " tokens" +
            (session.tree().empty() ? "]" : "; the next message makes it read the conversation]"));
  if (session.settings().Has("chat-template")) {
    PrintNote("[the template of --chat-template is used for this model too]");
  }
  return {};
}

}  // namespace vllm::app
