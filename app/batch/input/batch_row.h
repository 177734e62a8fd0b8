// BatchRow: one parsed row of a batch, ready for the engine. RowError: an error in one row. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/tools/tool_request.h"
#include "engine/frontend/llm_engine.h"
#include "engine/request/sampling_params.h"

namespace vllm::app {

enum class RowKind : uint8_t { kPlain, kOpenAiChat, kOpenAiCompletion, kEmbedding, kRerank };

inline bool IsPooling(RowKind kind) { return kind == RowKind::kEmbedding || kind == RowKind::kRerank; }

// The texts of a row for vectors or for a ranking.
struct PoolingInput {
  std::vector<std::string> texts;               // kRerank: the documents
  std::vector<std::vector<int32_t>> token_ids;  // kEmbedding: used instead of texts if there are any
  std::string query;                            // kRerank
  int64_t dimensions = 0;                       // kEmbedding; 0: the model's
  bool is_base64 = false;                       // kEmbedding
  int64_t top_n = 0;                            // kRerank; 0: all
};

// Identifies a row in the output by its custom_id, or else by its index among the rows of the input.
struct RowId {
  int64_t index = 0;    // from 0
  int64_t line = 0;     // first line of the row in the input, or the number of its file, from 1
  uint64_t digest = 0;  // RowDigest of the row
  // The value of custom_id, id or --id-column, or the path of a file.
  std::optional<std::string> custom_id;
  // The name and the value of the id in the output. An id may be an integer there.
  std::string id_key = "custom_id";
  nlohmann::ordered_json id_value;
  bool is_openai = false;
  bool claims_id = false;  // later rows with this id are duplicates
};

struct BatchRow {
  RowId id;
  RowKind kind = RowKind::kPlain;
  Prompt prompt;
  SamplingParams params;
  RequestOptions options;
  std::string model;                // the model that an OpenAI row names; empty: the loaded model
  ToolRequest tools;                // of a chat
  PoolingInput pooling;             // of a row for vectors or for a ranking, which has no prompt
  bool is_chat = false;             // the chat template made the prompt
  nlohmann::ordered_json carried;   // the fields of the input that are repeated in the output, an object; null: none
  std::vector<std::string> fields;  // of the row of a table
};

// The reason why a row cannot run, with the code for its error record: invalid_json, invalid_row, invalid_request or
// duplicate_custom_id. RowSource also reports line_too_long, and BatchRunner engine_error and aborted.
class RowError : public std::runtime_error {
 public:
  RowError(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

}  // namespace vllm::app
