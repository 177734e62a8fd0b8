// VLLM_CHECK(condition): a check that stays on in every build, for invariants that cost a comparison or two.
// A condition that is false is a bug of this program: the check throws std::logic_error, which ends the engine with the
// condition and the place as its cause, so that every request gets a final output. Any thread.
// This header holds no arithmetic, so that the scheduler and the KV cache manager may include it too.
#pragma once

namespace vllm {

// Throws std::logic_error that names the condition, the file and the line.
[[noreturn, gnu::cold]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace vllm

// A macro, for the text of the condition.
#define VLLM_CHECK(condition) ((condition) ? static_cast<void>(0) : ::vllm::CheckFailed(#condition, __FILE__, __LINE__))
