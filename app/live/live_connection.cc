#include "app/live/live_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr std::chrono::milliseconds kLocalInterval{250};

}  // namespace

std::optional<LiveFrame> LocalConnection::Receive() {
  const auto now = std::chrono::steady_clock::now();
  std::shared_ptr<const EngineSnapshot> latest = source_.monitor().Latest();
  const bool is_new = latest != nullptr && latest != seen_;
  seen_ = std::move(latest);
  if (now >= next_request_) {
    // At most 0.5 % of the engine's time, as in LiveServer.
    const auto cost = seen_ == nullptr ? Seconds(0) : seen_->cost;
    next_request_ =
        now + std::max<std::chrono::steady_clock::duration>(
                  kLocalInterval, std::chrono::duration_cast<std::chrono::steady_clock::duration>(200 * cost));
    source_.monitor().RequestSnapshot();
  }
  if (!is_new) return std::nullopt;
  return collector_.Collect(detail_);
}

void LocalConnection::SetAdmissionPaused(bool paused) {
  source_.monitor().SetAdmissionPaused(paused);
  next_request_ = {};
}

void LocalConnection::AbortRequest(RequestId request_id) {
  source_.monitor().AbortRequest(request_id);
  next_request_ = {};
}

SocketConnection::SocketConnection(const LiveSocket& socket, std::chrono::milliseconds interval)
    : socket_(socket), interval_(interval), fd_(ConnectLiveSocket(socket.path)) {
  if (!fd_.valid()) Throw(std::strerror(errno));
  SetDetail(0);
}

void SocketConnection::Throw(const std::string& why) const {
  throw ResourceError("process " + std::to_string(socket_.pid) + ": " + why);
}

void SocketConnection::ThrowClosed() {
  is_closed_ = true;
  Throw("has ended");
}

std::optional<LiveFrame> SocketConnection::Receive() {
  std::optional<std::string> payload;
  // Bounded, so that a process that sends without end cannot keep the viewer from reading keys.
  for (size_t num_bytes = 0; num_bytes < 2 * kMaxFrameBytes;) {
    std::array<char, 65536> buffer;
    const ssize_t num_read = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (num_read == 0 || (num_read < 0 && errno == ECONNRESET)) {
      if (payload) break;  // show the last frame first
      ThrowClosed();
    }
    if (num_read < 0) Throw(std::strerror(errno));
    num_bytes += static_cast<size_t>(num_read);
    if (!reader_.Feed(std::string_view(buffer.data(), static_cast<size_t>(num_read)))) {
      Throw(reader_.has_other_version() ? "is another version of vllmcli" : "does not speak the protocol of vllmcli");
    }
    while (std::optional<std::string> next = reader_.Next()) payload = std::move(next);
  }
  if (!payload) return std::nullopt;
  nlohmann::ordered_json json;
  LiveFrame frame;
  if (!ParseJsonText(*payload, json).empty() || !ReadLiveFrame(json, frame)) Throw("sent an invalid frame");
  has_frame_ = true;
  return frame;
}

void SocketConnection::Send(const LiveCommand& command) {
  const std::string message = EncodeLiveMessage(LiveMessageType::kCommand, LiveCommandText(command));
  // A command is much smaller than the socket's buffer. If it does not fit, the process is stuck.
  const ssize_t num_sent = send(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  if (num_sent == static_cast<ssize_t>(message.size())) return;
  if (num_sent < 0 && (errno == EPIPE || errno == ECONNRESET)) ThrowClosed();
  Throw("does not respond");
}

void SocketConnection::SetDetail(RequestId request_id) { Send({LiveAction::kWatch, interval_.count(), request_id}); }

void SocketConnection::SetAdmissionPaused(bool paused) {
  Send({paused ? LiveAction::kPause : LiveAction::kResume, 0, 0});
}

void SocketConnection::AbortRequest(RequestId request_id) { Send({LiveAction::kAbort, 0, request_id}); }

}  // namespace vllm::app
