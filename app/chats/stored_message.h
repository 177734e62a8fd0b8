// StoredMessage: one message of a conversation, with the exact tokens that the model read or sampled for it. A plain
// value.
//
// A conversation is a tree: the parent of a message is the message before it. Messages with the same parent are
// siblings: other answers to a question, or other versions of one. The token ids of a message continue those of its
// parent:
//
//   tokens up to m = (tokens up to the parent of m)[0, m.ids_begin) + m.token_ids
//
// For a question, these are the ids of a prompt; they include the ids that the chat template writes around the text.
// For an answer they are the sampled ids, and ids_begin is the length of the prompt. A prompt normally extends the ids
// of the answer before it (ids_begin is its length, or one less if the answer's EOS token is written by the template).
// If the template leaves the thinking of earlier turns out, a prompt extends the ids of the question before it, and its
// own ids begin with those of the answer without the thought. After a cut of the oldest turns, or if the template
// rewrote earlier turns, a question stores a new prompt from position 0.
//
// The results of the tools that an answer calls follow it, one message for each call, in the order of the calls. The
// last of them has the ids of the prompt of the next answer, as a question does. The others have none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

enum class ChatRole : uint8_t { kSystem, kUser, kAssistant, kTool };

// Returns "system", "user", "assistant" or "tool", as in chat templates.
std::string_view RoleName(ChatRole role);

struct StoredMessage {
  int64_t id = 0;      // unique in the database; positive
  int64_t parent = 0;  // 0: the first message of its conversation
  ChatRole role = ChatRole::kUser;
  std::string text;
  int64_t ids_begin = 0;           // see above; 0 for a system message, whose ids belong to the question
  std::vector<int32_t> token_ids;  // see above
  // Of a message with the ids of a prompt: the id of the oldest question in it; 0: the prompt has only this question.
  int64_t context_first = 0;

  // The thought of an answer.
  std::string thinking;
  int64_t num_thinking_ids = 0;  // token_ids[0, num_thinking_ids) are the thought and its markers
  int64_t thinking_ms = 0;       // how long it took

  std::string
      tool_calls;  // answers only: the calls as a JSON array in OpenAI's format, with arguments as objects; "": none
  std::string tool_call_id;  // results of tools only: the id of the call; never empty
  std::string tool_name;     // results of tools only

  // The origin of a question or an answer. Empty if it was imported.
  std::string model;               // the model's name, for display
  uint64_t model_digest = 0;       // see ModelDigest; another tokenizer or template has another digest
  std::string template_variables;  // of a message with the ids of a prompt: PromptRenderer::variables
  std::string sampling_params;     // answers only: a JSON object with the request's parameters, including its seed
  std::string finish_reason;       // answers only: "stop", "length", "abort", "error"; empty until the answer ends
  int64_t created_ms = 0;          // since 1970
  int64_t finished_ms = 0;         // 0: not finished
};

}  // namespace vllm::app
