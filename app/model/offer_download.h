// Offers to download a model that is not installed. Main thread, before the main loop.
#pragma once

#include "app/installed/find_model.h"

namespace vllm::app {

// Asks the user whether to download the model, with its size, and downloads it. Connects to the hub before the question
// only to find the size. Throws `missing` if it cannot ask, because this is no terminal or HF_HUB_OFFLINE is set, and
// if the answer is no. Throws ModelError if the hub does not have the model or does not answer, and what Pull throws.
void OfferDownload(const MissingModelError& missing);

}  // namespace vllm::app
