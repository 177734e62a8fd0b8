// CommandCompleter: completes slash commands, their arguments, and files after an at sign. A value; main thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/editor/completer.h"

namespace vllm::app {

class CommandCompleter {
 public:
  struct Command {
    std::string name;  // with the slash
    std::string description;
    bool is_alias = false;  // offered only when a letter of it has been typed
  };
  // Returns the choices for an argument of which `typed` has been typed. `typed` is all of the line after the command
  // and the blanks that follow it. Choices that do not begin with `typed` are dropped.
  using ArgumentProvider = std::function<std::vector<CompletionChoice>(const std::string& typed)>;

  explicit CommandCompleter(std::vector<Command> commands) : commands_(std::move(commands)) {}
  // Sets the provider for the argument of the command called `name`.
  void Provide(const std::string& name, ArgumentProvider provider);

  // See Completer.
  Completions operator()(std::string_view text) const;

 private:
  std::vector<Command> commands_;
  std::vector<std::pair<std::string, ArgumentProvider>> providers_;
};

// Returns true if the at sign at `position` begins a reference to a file: it is at the beginning of a line or after a
// blank.
bool BeginsFileReference(std::string_view text, size_t position);

}  // namespace vllm::app
