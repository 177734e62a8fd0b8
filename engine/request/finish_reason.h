// FinishReason: why a request ended, with the names of the OpenAI API and vLLM. Set by the scheduler and the front end.
// A plain value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vllm {

enum class FinishReason : uint8_t { kNone, kStop, kLength, kAbort, kError };
constexpr size_t kNumFinishReasons = 5;

constexpr std::string_view ToString(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

}  // namespace vllm
