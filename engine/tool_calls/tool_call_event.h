// ToolCallEvent: what ToolCallParser finds in an output, in the order of the text. ToolCall: a whole call. Plain
// values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vllm {

struct ToolCallEvent {
  enum class Kind : uint8_t {
    kText,       // `text` is text of the answer
    kReasoning,  // `text` is text of the thought; harmony only
    kCallStart,  // a call begins: `id`, `name`
    kArguments,  // `text` are the next bytes of the call's arguments
    kCallEnd,    // the call is finished. If `error` is not empty, it is broken: its arguments may be invalid JSON
  };
  Kind kind = Kind::kText;
  int32_t call_index = -1;  // of the call, from 0
  std::string text;
  std::string id;
  std::string name;
  std::string error;
  bool is_cut = false;  // kCallEnd with an error: the output was cut inside the call

  friend bool operator==(const ToolCallEvent&, const ToolCallEvent&) = default;
};

struct ToolCall {
  std::string id = {};
  std::string name = {};
  std::string arguments = {};  // the text of a JSON object, unless `error` is not empty
  std::string error = {};      // why the call is broken
  bool is_cut = false;         // the output was cut inside the call, so `arguments` is a beginning
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

// An output, as a whole.
struct ToolCallOutput {
  std::string text;
  std::string reasoning;
  std::vector<ToolCall> calls;
  std::string error;  // why a part of the output that looked like a call became text, or why a call is broken

  // Appends the events of one call of Feed or Finish.
  void Add(const std::vector<ToolCallEvent>& events);
};

}  // namespace vllm
