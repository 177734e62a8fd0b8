// ToolSource: where tools come from, such as programs on this machine or an MCP server. ToolResult: what a call
// returned. Owned by ToolBox; main thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/tools/poll_hook.h"
#include "engine/tool_calls/syntax/tool_definition.h"

namespace vllm::app {

struct ToolResult {
  std::string text;              // for the model; valid UTF-8
  bool failed = false;           // `text` says why
  bool was_interrupted = false;  // a hook has ended the call
};

class ToolSource {
 public:
  virtual ~ToolSource() = default;

  virtual const std::vector<ToolDefinition>& definitions() const = 0;
  // Runs the tool with this index in definitions(). `arguments` is the text of a JSON object on one line. Every failure
  // is a result. Throws only what the hooks throw.
  virtual ToolResult Run(size_t index, const std::string& arguments, std::span<const PollHook> hooks) = 0;
  // Asks for the definitions again if they may have changed. Returns true if they have.
  virtual bool Refresh(std::span<const PollHook> /*hooks*/) { return false; }
  // Describes for the user where the tool with this index comes from: its command, or its server.
  virtual std::string OriginOf(size_t index) const = 0;
  // Distinguishes its tools from tools of other sources with the same names; "": they keep their names.
  virtual std::string prefix() const { return ""; }
};

// The longest result that the model gets. What is longer is cut, and a note says so.
inline constexpr size_t kMaxResultBytes = size_t{64} << 10;

// Returns a failed result whose text is "error: <why>".
ToolResult FailedResult(const std::string& why);
// Returns `text` as valid UTF-8 of at most kMaxResultBytes. If more was cut, or `num_omitted_bytes` were omitted
// before, a last line says how much.
std::string ResultText(std::string_view text, int64_t num_omitted_bytes = 0);

}  // namespace vllm::app
