// VLLM_CHECK(condition): a check that is enabled in every build, for invariants that cost one or two comparisons to
// test. A false condition is a bug in this program. The check throws std::logic_error, which stops the engine; the
// cause names the condition and its location, and every request gets a final output. Any thread. The scheduler and the
// KV cache manager may include this header, because it contains no arithmetic.
#pragma once

namespace vllm::kernels {

// Throws std::logic_error with the condition, the file and the line.
[[noreturn, gnu::cold]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace vllm::kernels

// A macro, because it needs the text of the condition.
#define VLLM_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::vllm::kernels::CheckFailed(#condition, __FILE__, __LINE__))
