#include "engine/tool_calls/call_id.h"

#include "engine/config/hash.h"

namespace vllm {

std::string MakeCallId(ToolCallFormat::CallIds kind, std::string_view request_id, int32_t call_index,
                       std::string_view name) {
  if (kind == ToolCallFormat::CallIds::kKimi) {
    return "functions." + std::string(name) + ":" + std::to_string(call_index);
  }
  const Hash128 hash = HashBytes128(std::string(request_id) + '\n' + std::to_string(call_index));
  std::string id;
  if (kind == ToolCallFormat::CallIds::kNineCharacters) {
    constexpr std::string_view kCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t rest = hash.lo;
    for (int i = 0; i < 9; ++i) {
      id += kCharacters[rest % kCharacters.size()];
      rest /= kCharacters.size();
    }
    return id;
  }
  id = "call_";
  for (int i = 0; i < 24; ++i) {
    const uint64_t half = i < 16 ? hash.lo : hash.hi;
    id += "0123456789abcdef"[(half >> (i % 16 * 4)) & 15];
  }
  return id;
}

}  // namespace vllm
