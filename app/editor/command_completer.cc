#include "app/editor/command_completer.h"

#include "app/editor/path_completion.h"

namespace vllm::app {
namespace {

constexpr std::string_view kBlanks = " \t\n";

void Keep(std::string_view typed, std::vector<CompletionChoice> choices, Completions& result) {
  for (CompletionChoice& choice : choices) {
    if (choice.text.starts_with(typed)) result.choices.push_back(std::move(choice));
  }
}

// Returns the beginning of the last word; a backslash makes the next character part of it.
size_t LastWord(std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (kBlanks.find(text[i]) != std::string_view::npos) {
      begin = i + 1;
    }
  }
  return begin;
}

}  // namespace

bool BeginsFileReference(std::string_view text, size_t position) {
  return position == 0 || kBlanks.find(text[position - 1]) != std::string_view::npos;
}

void CommandCompleter::Provide(const std::string& name, ArgumentProvider provider) {
  providers_.emplace_back(name, std::move(provider));
}

Completions CommandCompleter::operator()(std::string_view text) const {
  Completions result;
  const bool is_command = text.starts_with('/') && !text.starts_with("//");
  const size_t gap = text.find_first_of(kBlanks);
  if (is_command && gap == std::string_view::npos) {
    for (const Command& command : commands_) {
      if (command.is_alias && text.size() < 2) continue;
      if (command.name.starts_with(text)) result.choices.push_back({command.name, command.description});
    }
    return result;
  }
  if (is_command) {
    const std::string_view name = text.substr(0, gap);
    result.begin = text.find_first_not_of(kBlanks, gap);
    if (result.begin == std::string_view::npos) result.begin = text.size();
    const std::string typed(text.substr(result.begin));
    for (const auto& [command, provider] : providers_) {
      if (command == name) Keep(typed, provider(typed), result);
    }
    return result;
  }
  result.begin = LastWord(text);
  const std::string_view word = text.substr(result.begin);
  if (!word.starts_with('@')) return {};
  for (CompletionChoice& choice : PathChoices(word.substr(1))) {
    choice.text.insert(0, "@");
    result.choices.push_back(std::move(choice));
  }
  return result;
}

}  // namespace vllm::app
