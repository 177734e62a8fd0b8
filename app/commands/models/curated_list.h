// `vllmcli pull --list`. Main thread.
#pragma once

namespace vllm::app {

// Prints the models of curated_models.h as a table or as JSON. Returns the exit status.
int ListCuratedModels(bool as_json);

}  // namespace vllm::app
