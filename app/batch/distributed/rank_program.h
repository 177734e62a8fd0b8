// The program of a rank of a distributed batch other than 0. Main thread.
#pragma once

#include "app/cli/settings.h"
#include "engine/distributed/launcher.h"

namespace vllm::app {

// Loads the model and serves requests until rank 0 ends the job. Reads no input and writes no output. Prints nothing:
// rank 0 receives warnings and errors, and prints them. Returns the exit status, which is 0 unless rank 0 is gone.
// Throws ConfigError if the job cannot be joined.
int RunRank(const Settings& given, const LaunchInfo& launch);

}  // namespace vllm::app
