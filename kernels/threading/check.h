// VLLM_CHECK(condition): an assertion that stays on in every build, for invariants that cost one or two comparisons to
// check. A false condition is a bug in this program. The check throws std::logic_error with the condition and its
// location. The engine then stops with this error, and each unfinished request gets a final output. Any thread. This
// header needs no kernel, so the scheduler and the KV cache manager may include it.
#pragma once

namespace vllm::kernels {

// Throws std::logic_error with the condition, the file and the line.
[[noreturn, gnu::cold]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace vllm::kernels

// A macro, because the message contains the source text of the condition.
#define VLLM_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::vllm::kernels::CheckFailed(#condition, __FILE__, __LINE__))
