// Asks the user a question on the terminal. Main thread, before the main loop.
#pragma once

#include <string>

namespace vllm::app {

// Returns true if somebody can answer: standard input and standard error are terminals, and the process is in the
// foreground, so that reading does not stop it.
bool CanAsk();

// Prints "<question> [Y/n] " or "[y/N]" on standard error and reads a line. An empty line is the default. Asks again
// after any other text than y, yes, n and no, three times in all. The end of the input is no. REQUIRES: CanAsk().
bool AskYesNo(const std::string& question, bool is_yes_default);

}  // namespace vllm::app
