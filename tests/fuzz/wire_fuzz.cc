// Fuzzes the decoders of the messages between ranks. A message that is accepted must be encoded again to the same
// bytes, unless it contains times, which are relative to the present.
#include <string>

#include "engine/distributed/wire.h"
#include "engine/distributed/wire_archive.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

const SteadyTime kNow = std::chrono::steady_clock::now();

// Decodes a message and encodes it again.
std::string Again(MessageType type, std::string_view message) {
  switch (type) {
    case MessageType::kHost:
      return EncodeHost(DecodeHost(message));
    case MessageType::kHello:
      return EncodeHello(DecodeHello(message));
    case MessageType::kFailed:
      return EncodeFailed(DecodeFailed(message));
    case MessageType::kOutputs: {
      EngineCoreOutputs outputs;
      DecodeOutputs(message, kNow, outputs);
      return EncodeOutputs(outputs, kNow);
    }
    case MessageType::kDied:
      return EncodeDied(DecodeDied(message));
    case MessageType::kPlace:
      return EncodePlace(DecodePlace(message));
    case MessageType::kAdd:
      DecodeAdd(message, kNow);
      return std::string(message);
    case MessageType::kAbort: {
      const AbortMessage abort = DecodeAbort(message);
      return EncodeAbort(abort.request_ids, abort.urgency);
    }
    case MessageType::kAbortWithOutput:
      return EncodeAbortWithOutput(DecodeAbortWithOutput(message));
    case MessageType::kShutdown:
      return EncodeShutdown(DecodeShutdown(message));
    case MessageType::kResetDone:
    case MessageType::kPause:
      return EncodeFlag(type, DecodeFlag(message));
    case MessageType::kClosed:
    case MessageType::kReset:
      return std::string(message);
  }
  return {};
}

}  // namespace

void FuzzOne(std::string_view input) {
  try {
    Require(Again(TypeOf(input), input) == input, "a decoded message is encoded to the same bytes");
  } catch (const WireError&) {
  }
}

}  // namespace vllm
