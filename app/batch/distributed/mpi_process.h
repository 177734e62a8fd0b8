// What all ranks of a distributed batch do to become part of the job. Main thread.
#pragma once

#include <optional>

#include "engine/distributed/launcher.h"
#include "engine/distributed/transport.h"
#include "engine/distributed/wire.h"

namespace vllm::app {

// Returns how MPI has started this process; nullopt if it runs alone.
std::optional<LaunchInfo> LaunchOfThisProcess();

// Returns a function that joins the job. It throws as MpiLink does.
Transport::LinkFactory LinkOf(const LaunchInfo& launch);

// Lets this thread, and those that it starts, use only this rank's share of the CPUs.
void TakePlace(const PlaceMessage& place);

}  // namespace vllm::app
