// Remembers when each installed model was last loaded: the modification time of an empty file per model in
// $XDG_STATE_HOME/vllmcli/last-use. The file's name is a hash of the model's origin and name, so two processes never
// change the same bytes, and the directory does not tell which models were used. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "app/installed/model_location.h"

namespace vllm::app {

// Notes that the model is loaded now. Does nothing for a model that was named by its path, and if the file cannot be
// written.
void NoteUse(const ModelLocation& location);

// Returns when the model was last loaded, in milliseconds since 1970, or nullopt if that is unknown.
std::optional<int64_t> LastUseMs(const ModelLocation& location);

// Forgets a model that is removed.
void ForgetUse(const ModelLocation& location);

}  // namespace vllm::app
