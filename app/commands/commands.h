// The program's commands. Each runs to completion on the main thread and returns the exit status. A command throws on
// failures that prevent it from completing; Main turns the exception into an exit status and, unless a signal or a
// closed pipe ended the command, a line on standard error.
#pragma once

#include <string>

#include "app/cli/settings.h"

namespace vllm::app {

int ChatCommand(const Settings& settings);
int CacheCommand(const Settings& settings);
int ChatsCommand(const Settings& settings);
int PresetsCommand(const Settings& settings);
int GenerateCommand(const Settings& settings);  // run, complete
int FollowUpCommand(const Settings& settings);  // run with -c, --resume or --save
int BatchCommand(const Settings& settings);
int TokenizeCommand(const Settings& settings);
int RenderCommand(const Settings& settings);
int TopCommand(const Settings& settings);
int PullCommand(const Settings& settings);
int ShowCommand(const Settings& settings);
int TraceCommand(const Settings& settings);
int ConfigCommand(const Settings& settings);
int CompletionsCommand(const Settings& settings);

// The whole program: parses the command line, runs the command and returns the exit status. Does not throw.
int Main(int argc, char** argv);

}  // namespace vllm::app
