// Reads the bodies of batch rows for /v1/embeddings and /v1/rerank. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/batch/input/batch_row.h"

namespace vllm::app {

// Sets row.pooling, row.model and the options of the row. Throws RowError that names the field. REQUIRES: row.kind is
// kEmbedding or kRerank.
void ReadPoolingBody(const nlohmann::ordered_json& body, BatchRow& row);

}  // namespace vllm::app
