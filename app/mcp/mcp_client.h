// McpClient: a connection to one MCP server, which runs as a child process and speaks JSON-RPC over its standard
// streams (modelcontextprotocol.io, transport "stdio"). Owned by McpTools; main thread.
//
// The server is not trusted. Every wait has a deadline. What the server writes is read in bounded pieces: lines that
// are no messages are ignored, answers to unknown requests too, and its requests are answered with "method not found".
// Its standard error is always read, so that it cannot block; the end of it is kept for messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/mcp/mcp_message_reader.h"
#include "app/mcp/mcp_server_spec.h"
#include "app/tools/poll_hook.h"

namespace vllm::app {

// The answer to a request.
struct McpReply {
  enum class Status : uint8_t {
    kResult,
    kError,        // the server answered with a JSON-RPC error
    kFailed,       // no answer: the server ended, broke the protocol or took too long
    kInterrupted,  // a hook returned false
  };
  Status status = Status::kFailed;
  std::string text;  // kResult: JSON; else why there is none, for the user and the model
  int64_t error_code = 0;
  std::string error_data;  // JSON, or ""

  bool ok() const { return status == Status::kResult; }
};

class McpClient {
 public:
  explicit McpClient(McpServerSpec spec) : spec_(std::move(spec)) {}
  // Ends the server: closes its input, waits, SIGTERM, waits, SIGKILL to its process group.
  ~McpClient() { Close(); }
  McpClient(const McpClient&) = delete;
  McpClient& operator=(const McpClient&) = delete;

  // Starts the server and agrees on a version of the protocol. A reply that is not kResult says why that failed; the
  // server is then closed.
  McpReply Connect(std::span<const PollHook> hooks);
  // Sends a request and waits for its answer, at most spec().timeout. `params_json` is the text of a JSON object.
  // After a timeout or an interruption, notifies the server that the request is cancelled.
  McpReply Request(std::string_view method, const std::string& params_json, std::span<const PollHook> hooks);
  // Reads what the server has written since the last call, without waiting.
  void ReadPending();
  // Returns true once after the server has reported that its list of tools has changed.
  bool TakeToolsChanged();
  void Close();

  bool is_open() const { return child_ != nullptr; }
  const McpServerSpec& spec() const { return spec_; }
  const std::string& version() const { return version_; }  // of the protocol; "" before Connect
  // Lines of standard output that were no messages, and messages that were no answer to a waiting request.
  int64_t num_ignored() const { return reader_.num_ignored_lines() + num_ignored_messages_; }

 private:
  using Clock = std::chrono::steady_clock;

  McpReply Discover(std::span<const PollHook> hooks);
  McpReply Initialize(std::span<const PollHook> hooks);
  // Sends a request and waits at most `limit`.
  McpReply Exchange(std::string_view method, const std::string& params_json, std::chrono::milliseconds limit,
                    std::span<const PollHook> hooks);
  // Starts the process. Returns why that failed, or "".
  std::string Start();
  // Queues a line for the server's input. Returns false if the server does not read and the queue is full.
  bool Send(std::string_view line);
  void Flush();
  // Reads and handles what the server has written. Returns false if its standard output has ended.
  bool ReadOutput();
  void ReadErrorOutput();
  void Handle(McpMessage message);
  McpReply Fail(const std::string& why) const;
  void Cancel(int64_t id, std::string_view reason);

  McpServerSpec spec_;
  std::unique_ptr<ChildProcess> child_;
  McpMessageReader reader_;
  std::string outgoing_;  // not written yet
  std::string error_output_;
  std::string version_;
  bool tools_changed_ = false;
  int64_t num_requests_ = 0;
  int64_t num_ignored_messages_ = 0;
  int64_t waiting_id_ = 0;           // of the request whose answer is awaited; 0: none
  std::unique_ptr<McpReply> reply_;  // to that request
};

}  // namespace vllm::app
