// The program's commands: each runs to its end on the main thread and returns the exit status. Failures that the
// outside world causes are thrown; Main turns them into a line on standard error and a status.
#pragma once

#include <string>

#include "app/cli/settings.h"

namespace vllm {

int ChatCommand(const Settings& settings);
int GenerateCommand(const Settings& settings);  // run, complete
int BatchCommand(const Settings& settings);
int TokenizeCommand(const Settings& settings);
int RenderCommand(const Settings& settings);
int ModelsCommand(const Settings& settings);
int ShowCommand(const Settings& settings);
int ConfigCommand(const Settings& settings);
int CompletionsCommand(const Settings& settings);

// The whole program: parses the words after the first, runs the command and returns the exit status. Nothing is thrown.
int Main(int argc, char** argv);

}  // namespace vllm
