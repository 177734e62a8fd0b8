// ToolApproval: decides which calls of tools run: --approve-tools, and the user's answers. Owned by ToolUse; main
// thread.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "app/tools/poll_hook.h"

namespace vllm::app {

enum class ApprovePolicy : uint8_t { kNever, kAsk, kAlways };

// Parses the value of --approve-tools: never, ask or always. REQUIRES: it is one of these.
ApprovePolicy ParseApprovePolicy(const std::string& value);

class ToolApproval {
 public:
  enum class Verdict : uint8_t {
    kRun,
    kRefused,      // by the user or by --approve-tools never
    kNobodyToAsk,  // there is no terminal
    kInterrupted,  // a hook returned false while the question was shown
  };

  explicit ToolApproval(ApprovePolicy policy) : policy_(policy) {}

  // Decides on a call of the tool `name`, which has been shown to the user. Asks on the terminal if the policy is kAsk,
  // unless the user has answered "always" for this tool. Ignores what was typed before the question. Throws what the
  // hooks throw.
  // Returns how a call of the tool is decided now.
  ApprovePolicy PolicyFor(const std::string& name) const {
    return always_.contains(name) ? ApprovePolicy::kAlways : policy_;
  }
  // Asks before every call again, also of tools with the answer "always".
  void AskAgain() {
    policy_ = ApprovePolicy::kAsk;
    always_.clear();
  }
  Verdict Decide(const std::string& name, std::span<const PollHook> hooks);

 private:
  ApprovePolicy policy_;
  std::set<std::string> always_;  // names of tools
};

}  // namespace vllm::app
