#include "app/cli/docs/completions.h"
#include "app/commands/commands.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {

int CompletionsCommand(const Settings& settings) {
  if (settings.arguments.size() != 1) throw ConfigError("completions: expects a shell (bash, zsh or fish)");
  StandardOutput().Write(SafeText(CompletionScript(settings.arguments[0])));
  return 0;
}

}  // namespace vllm::app
