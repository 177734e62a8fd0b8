// The messages between a process that runs an engine and its viewers, over a Unix socket. Both sides treat the other as
// hostile: messages have a maximum size, and their contents are checked. Plain values; each object belongs to one
// thread.
//
//   message := magic "VLLV", u16 version, u16 type, u32 length, payload of `length` bytes: one JSON object
//
// Integers are little-endian. Types and their payloads:
//   1  process -> viewer: LiveFrameJson
//   2  viewer -> process: a command, such as {"command": "watch", "interval_ms": 250, "detail": 7}
//
// Example: 56 4c 4c 56  01 00  02 00  13 00 00 00  {"command":"pause"}
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/request/request_id.h"

namespace vllm::app {

inline constexpr uint16_t kLiveVersion = 1;
inline constexpr size_t kLiveHeaderBytes = 12;
inline constexpr size_t kMaxFrameBytes = size_t{4} << 20;
inline constexpr size_t kMaxCommandBytes = 1024;

enum class LiveMessageType : uint16_t { kFrame = 1, kCommand = 2 };

// Returns the message with its header.
std::string EncodeLiveMessage(LiveMessageType type, std::string_view payload);

// Cuts a stream into messages of one type.
class LiveMessageReader {
 public:
  LiveMessageReader(LiveMessageType type, size_t max_bytes) : type_(type), max_bytes_(max_bytes) {}

  // Adds bytes of the stream. Returns false if the stream is invalid: another protocol or version, another type, or a
  // message of more than max_bytes. It stays invalid.
  bool Feed(std::string_view bytes);
  // Returns the payload of the next complete message, or nullopt.
  std::optional<std::string> Next();
  // Returns true if the stream is invalid because of its version only.
  bool has_other_version() const { return has_other_version_; }

 private:
  bool CheckHeader();

  LiveMessageType type_;
  size_t max_bytes_;
  std::string buffer_;
  bool is_valid_ = true;
  bool has_other_version_ = false;
};

enum class LiveAction : uint8_t { kWatch, kPause, kResume, kAbort };

struct LiveCommand {
  LiveAction action = LiveAction::kWatch;
  int64_t interval_ms = 0;   // kWatch: send a frame this often; 0: once
  RequestId request_id = 0;  // kWatch: the request whose text is sent, 0: none; kAbort: the request to end
};

std::string LiveCommandText(const LiveCommand& command);
// Returns nullopt if the text is not a valid command.
std::optional<LiveCommand> ParseLiveCommand(std::string_view text);

}  // namespace vllm::app
