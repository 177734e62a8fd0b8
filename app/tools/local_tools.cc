#include "app/tools/local_tools.h"

#include <utility>

#include "app/tools/run_child.h"

namespace vllm::app {
namespace {

std::string SecondsText(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s" : std::to_string(time.count()) + " ms";
}

// Returns why the call failed, or "".
std::string Failure(const ChildResult& result, std::chrono::milliseconds timeout) {
  switch (result.end) {
    case ChildResult::End::kTimedOut:
      return "the tool did not end within " + SecondsText(timeout) + " and was stopped";
    case ChildResult::End::kInterrupted:
      return "the user stopped the tool";
    case ChildResult::End::kTooMuchOutput:
      return "the tool wrote more than " + std::to_string(ChildResult::kMaxReadBytes >> 20) + " MiB and was stopped";
    case ChildResult::End::kEnded:
      return result.succeeded ? "" : "the tool " + result.end_text;
  }
  return "";
}

}  // namespace

LocalTools::LocalTools(std::vector<LocalTool> tools) : tools_(std::move(tools)) {
  for (const LocalTool& tool : tools_) definitions_.push_back(tool.definition);
}

std::string LocalTools::OriginOf(size_t index) const {
  std::string words;
  for (const std::string& word : tools_.at(index).command.argv) words += (words.empty() ? "" : " ") + word;
  return words.empty() ? "cannot be run" : words;
}

ToolResult LocalTools::Run(size_t index, const std::string& arguments, std::span<const PollHook> hooks) {
  const LocalTool& tool = tools_.at(index);
  if (tool.command.argv.empty()) return FailedResult("the tool has no command, so it cannot be run here");
  ChildLimits limits;
  limits.timeout = tool.timeout;
  limits.max_output_bytes = kMaxResultBytes;
  ChildResult child;
  try {
    child = RunChild(tool.command, arguments + "\n", limits, hooks);
  } catch (const ToolError& error) {
    return FailedResult(error.what());
  }
  const std::string failure = Failure(child, tool.timeout);
  ToolResult result;
  if (failure.empty()) {
    result.text = ResultText(child.output, child.num_omitted_bytes);
    return result;
  }
  result = FailedResult(failure);
  result.was_interrupted = child.end == ChildResult::End::kInterrupted;
  for (const std::string& text : {child.error_output, child.output}) {
    if (!text.empty()) result.text += "\n" + ResultText(text);
  }
  return result;
}

}  // namespace vllm::app
