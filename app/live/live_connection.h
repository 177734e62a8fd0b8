// LiveConnection: a viewer's access to one engine, in this process (LocalConnection) or in another (SocketConnection).
// Owned by a command; main thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "app/live/live_directory.h"
#include "app/live/live_frame.h"
#include "app/live/live_protocol.h"
#include "app/live/live_source.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

class LiveConnection {
 public:
  virtual ~LiveConnection() = default;

  // Returns the newest frame, or nullopt if there is none since the last call. Never waits. Throws ResourceError if the
  // connection is lost.
  virtual std::optional<LiveFrame> Receive() = 0;
  // A descriptor for poll() that is readable when Receive may return a frame; -1: call Receive from time to time.
  virtual int fd() const = 0;
  // Selects the request whose text the frames contain; 0: none.
  virtual void SetDetail(RequestId request_id) = 0;
  virtual void SetAdmissionPaused(bool paused) = 0;
  virtual void AbortRequest(RequestId request_id) = 0;
};

class LocalConnection final : public LiveConnection {
 public:
  explicit LocalConnection(LiveSource& source) : source_(source), collector_(source) {}

  std::optional<LiveFrame> Receive() override;
  int fd() const override { return -1; }
  void SetDetail(RequestId request_id) override { detail_ = request_id; }
  void SetAdmissionPaused(bool paused) override;
  void AbortRequest(RequestId request_id) override;

 private:
  LiveSource& source_;
  LiveCollector collector_;
  RequestId detail_ = 0;
  std::shared_ptr<const EngineSnapshot> seen_;
  std::chrono::steady_clock::time_point next_request_{};
};

class SocketConnection final : public LiveConnection {
 public:
  // Connects and asks for frames; interval 0: for one frame. Throws ResourceError `process <pid>: <why>`.
  SocketConnection(const LiveSocket& socket, std::chrono::milliseconds interval);

  std::optional<LiveFrame> Receive() override;
  int fd() const override { return fd_.get(); }
  void SetDetail(RequestId request_id) override;
  void SetAdmissionPaused(bool paused) override;
  void AbortRequest(RequestId request_id) override;

  const LiveSocket& socket() const { return socket_; }
  // After a call has thrown: returns true if the process had sent frames and then closed the connection. It does this
  // when it ends, and to a viewer that was suspended for long, which may connect again.
  bool was_closed() const { return has_frame_ && is_closed_; }

 private:
  void Send(const LiveCommand& command);
  [[noreturn]] void Throw(const std::string& why) const;
  [[noreturn]] void ThrowClosed();

  LiveSocket socket_;
  std::chrono::milliseconds interval_;
  tokenizer::UniqueFd fd_;
  bool has_frame_ = false;
  bool is_closed_ = false;
  LiveMessageReader reader_{LiveMessageType::kFrame, kMaxFrameBytes};
};

}  // namespace vllm::app
