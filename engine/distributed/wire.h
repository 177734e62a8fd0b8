// The messages between rank 0 and the other ranks of a distributed job, and their encoding. Rank 0 is the front end;
// every other rank runs an engine for it. wire_archive.h specifies the types of fields. Pure functions; any thread.
//
// clang-format off
//   message     = type payload                    type: uint8, see MessageType
//
//   From a rank to rank 0, in this order: host, then hello or failed; then any number of outputs, then died or closed.
//   host        = 1 uint32 string list<int32> int64
//       kWireVersion, always the first field of the first message; host name; the CPUs that the process may use; the
//       number of CPUs of the machine if the launcher has bound the process to some of them, else 0
//   hello       = 2 string int64{3} double list<string>
//       JSON with what must be equal on all ranks; num_blocks, max_model_len, spare_memory_bytes; load time in seconds;
//       warnings for the user
//   failed      = 3 uint8 string string           the rank cannot load the model; FailureKind, message, hint
//   outputs     = 4 stats uint32 output*          the outputs since the last message
//   died        = 5 string                        the engine has failed; cause
//   closed      = 6                               the engine has shut down; no outputs follow
//   reset_done  = 7 bool                          result of ResetPrefixCache
//
//   From rank 0 to a rank: place, then any of the others; shutdown is the last.
//   place       = 32 int64{3}                     num_local_processes, num_sharing, share_index of PlaceMessage
//   add         = 33 request
//   abort       = 34 uint8 list<uint64>           AbortUrgency, request ids
//   abort_with_output = 35 uint64                 request id, see EngineMonitor::AbortRequest
//   pause       = 36 bool                         SetAdmissionPaused
//   reset       = 37                              ResetPrefixCache
//   shutdown    = 38 uint8 bool                   ShutdownMode; whether a rank has failed, see PacketLink::SetBroken
//
//   request, output and stats are the fields of EngineCoreRequest, EngineCoreOutput and SchedulerStats, in the order of
//   wire.cc. Steady clocks differ between machines, so a point in time is the number of nanoseconds (int64) that have
//   passed since, or -1 for none. A grammar is sent as its source and compiled by the rank that uses it; the
//   format of the model's thinking is only a flag, because every rank knows that of its model.
//
//   Example: abort requests 7 and 8 after the current step:
//   22 01 02 00 00 00  07 00 00 00 00 00 00 00  08 00 00 00 00 00 00 00
// clang-format on
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/engine_core_client.h"
#include "engine/request/engine_core_outputs.h"
#include "engine/request/engine_core_request.h"

namespace vllm {

// Changes with every change of a message.
inline constexpr uint32_t kWireVersion = 6;

enum class MessageType : uint8_t {
  kHost = 1,
  kHello,
  kFailed,
  kOutputs,
  kDied,
  kClosed,
  kResetDone,
  kPlace = 32,
  kAdd,
  kAbort,
  kAbortWithOutput,
  kPause,
  kReset,
  kShutdown,
};

// The type of the exception with which loading the model failed.
enum class FailureKind : uint8_t { kOther, kConfig, kModel, kResource };

struct HostMessage {
  std::string name;
  std::vector<int32_t> cpus;     // that the process may use
  int64_t num_machine_cpus = 0;  // 0: the launcher has not bound the process to CPUs
};

struct HelloMessage {
  std::string identity;  // JSON
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;
  int64_t spare_memory_bytes = 0;
  double load_seconds = 0;
  std::vector<std::string> warnings;
};

struct FailedMessage {
  FailureKind kind = FailureKind::kOther;
  std::string text;
  std::string hint;
};

struct PlaceMessage {
  int64_t num_local_processes = 1;  // of the job on this machine
  // Of these, the ones that may use the same CPUs as this one, and the index of this one among them.
  int64_t num_sharing = 1;
  int64_t share_index = 0;
};

struct AbortMessage {
  AbortUrgency urgency = AbortUrgency::kPrompt;
  std::vector<RequestId> request_ids;
};

struct ShutdownMessage {
  ShutdownMode mode = ShutdownMode::kAbort;
  bool is_broken = false;
};

// A request as it arrives: without its grammar and reasoning_format, which the receiver has to add.
struct AddMessage {
  std::shared_ptr<EngineCoreRequest> request;
  bool has_reasoning_format = false;
};

// Return the encoded message.
std::string EncodeHost(const HostMessage& host);
std::string EncodeHello(const HelloMessage& hello);
std::string EncodeFailed(const FailedMessage& failed);
std::string EncodeOutputs(const EngineCoreOutputs& outputs, SteadyTime now);
std::string EncodeDied(const std::string& cause);
std::string EncodePlace(const PlaceMessage& place);
std::string EncodeAdd(const EngineCoreRequest& request);
std::string EncodeAbort(std::span<const RequestId> request_ids, AbortUrgency urgency);
std::string EncodeAbortWithOutput(RequestId request_id);
std::string EncodeShutdown(const ShutdownMessage& shutdown);
// kResetDone, kPause.
std::string EncodeFlag(MessageType type, bool value);
// kClosed, kReset.
std::string EncodeEmpty(MessageType type);

// Returns the type of a message. Throws WireError if it has none.
MessageType TypeOf(std::string_view message);

// Decode a message of the type in their name. Throw WireError.
HostMessage DecodeHost(std::string_view message);
HelloMessage DecodeHello(std::string_view message);
FailedMessage DecodeFailed(std::string_view message);
// Replaces the contents of `outputs`, and keeps its capacity.
void DecodeOutputs(std::string_view message, SteadyTime now, EngineCoreOutputs& outputs);
std::string DecodeDied(std::string_view message);
PlaceMessage DecodePlace(std::string_view message);
AddMessage DecodeAdd(std::string_view message, SteadyTime now);
AbortMessage DecodeAbort(std::string_view message);
RequestId DecodeAbortWithOutput(std::string_view message);
ShutdownMessage DecodeShutdown(std::string_view message);
bool DecodeFlag(std::string_view message);

}  // namespace vllm
