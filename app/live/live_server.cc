#include "app/live/live_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/live/live_directory.h"
#include "app/live/live_protocol.h"
#include "app/output/json_text.h"
#include "engine/threading/block_signals.h"
#include "engine/threading/event_fd.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Clock = std::chrono::steady_clock;

// A frame at most this often per viewer.
constexpr std::chrono::milliseconds kMinInterval{100};
// A viewer that takes no bytes, or sends no command at all, for this long is disconnected.
constexpr std::chrono::seconds kPatience{10};
// The time until the next attempt after accept4 has failed. Polling at once would keep the thread busy.
constexpr std::chrono::seconds kRetryInterval{1};
// The engine makes a snapshot at most every kCostFactor times as long as one takes, so snapshots take less than 0.5 %
// of its time even if there are millions of KV blocks.
constexpr int kCostFactor = 200;

struct Viewer {
  tokenizer::UniqueFd fd;
  LiveMessageReader reader{LiveMessageType::kCommand, kMaxCommandBytes};
  std::string output;  // the unsent part of a frame
  bool watches = false;
  bool wants_one = false;
  // Has sent the engine commands since the last snapshot. Until the next one, nothing more is read from this viewer, so
  // that it cannot fill the engine's queue during a long step.
  bool has_steered = false;
  std::chrono::milliseconds interval{0};
  RequestId detail = 0;
  Clock::time_point due{};
  Clock::time_point last_progress = Clock::now();
  bool is_gone = false;
};

}  // namespace

struct LiveServer::Impl {
  Impl(const LiveSource& live_source, std::string socket_path, tokenizer::UniqueFd listening_fd)
      : source(live_source), path(std::move(socket_path)), listen_fd(std::move(listening_fd)), collector(live_source) {}

  void Run() {
    while (!stop_requested()) {
      PollOnce();
      Clean();
    }
  }

  bool stop_requested() const {
    pollfd fd = {stop.fd(), POLLIN, 0};
    return poll(&fd, 1, 0) > 0;
  }

  void PollOnce() {
    const Clock::time_point now = Clock::now();
    const bool accepts = now >= next_accept;
    std::vector<pollfd> fds = {{stop.fd(), POLLIN, 0},
                               {accepts && viewers.size() < kMaxViewers ? listen_fd.get() : -1, POLLIN, 0},
                               {snapshot_requested ? source.monitor().SnapshotFd() : -1, POLLIN, 0}};
    auto wake = now + kPatience;
    if (!accepts) wake = std::min(wake, next_accept);
    for (const Viewer& viewer : viewers) {
      const int events = (viewer.has_steered ? 0 : POLLIN) | (viewer.output.empty() ? 0 : POLLOUT);
      fds.push_back({viewer.fd.get(), static_cast<short>(events), 0});
      if (NeedsSnapshot(viewer) && !snapshot_requested) wake = std::min(wake, std::max(viewer.due, next_snapshot));
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake - now).count();
    // Without viewers there is nothing to do until one connects.
    const bool waits_for_viewers = viewers.empty() && accepts;
    poll(fds.data(), fds.size(), waits_for_viewers ? -1 : static_cast<int>(std::clamp<int64_t>(wait, 0, 10'000)));
    for (size_t i = 0; i + 3 < fds.size(); ++i) {
      if ((fds[i + 3].revents & (POLLIN | POLLHUP | POLLERR)) != 0) Receive(viewers[i]);
      if ((fds[i + 3].revents & POLLOUT) != 0) Send(viewers[i]);
    }
    if (fds[2].revents != 0) {
      snapshot_requested = false;
      for (Viewer& viewer : viewers) viewer.has_steered = false;
      SendFrames();
    }
    if (fds[1].revents != 0) Accept();
    RequestSnapshotIfDue();
  }

  // A viewer with an unsent frame gets no other before it has taken that one.
  static bool NeedsSnapshot(const Viewer& viewer) {
    return viewer.has_steered || (viewer.watches && viewer.output.empty());
  }

  void Accept() {
    tokenizer::UniqueFd fd(accept4(listen_fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      // The connection is still waiting, for example because there are no more descriptors.
      next_accept = Clock::now() + kRetryInterval;
    } else if (PeerIsSameUser(fd.get())) {
      viewers.emplace_back().fd = std::move(fd);
    }
  }

  void Receive(Viewer& viewer) {
    // One read per turn, so that a viewer that sends without end cannot keep the thread busy for the others.
    std::array<char, 4096> buffer{};
    const ssize_t num_read = recv(viewer.fd.get(), buffer.data(), buffer.size(), 0);
    if (num_read < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (num_read <= 0 || !viewer.reader.Feed(std::string_view(buffer.data(), static_cast<size_t>(num_read)))) {
      viewer.is_gone = true;
      return;
    }
    while (const std::optional<std::string> text = viewer.reader.Next()) {
      const std::optional<LiveCommand> command = ParseLiveCommand(*text);
      viewer.is_gone = viewer.is_gone || !command;
      if (command) Obey(*command, viewer);
    }
  }

  void Obey(const LiveCommand& command, Viewer& viewer) {
    switch (command.action) {
      case LiveAction::kWatch:
        viewer.watches = true;
        viewer.wants_one = command.interval_ms == 0;
        viewer.interval = std::max(kMinInterval, std::chrono::milliseconds(command.interval_ms));
        viewer.detail = command.request_id;
        viewer.due = Clock::now();
        return;
      case LiveAction::kPause:
      case LiveAction::kResume:
        source.monitor().SetAdmissionPaused(command.action == LiveAction::kPause);
        break;
      case LiveAction::kAbort:
        source.monitor().AbortRequest(command.request_id);
        break;
    }
    viewer.has_steered = true;
    viewer.due = Clock::now();  // show the effect
  }

  void RequestSnapshotIfDue() {
    const Clock::time_point now = Clock::now();
    if (snapshot_requested || now < next_snapshot) return;
    const bool is_due = std::any_of(viewers.begin(), viewers.end(),
                                    [now](const Viewer& viewer) { return NeedsSnapshot(viewer) && viewer.due <= now; });
    if (!is_due) return;
    snapshot_requested = true;
    source.monitor().RequestSnapshot();
  }

  void SendFrames() {
    const Clock::time_point now = Clock::now();
    next_snapshot = now + kMinInterval;
    for (Viewer& viewer : viewers) {
      if (!viewer.watches || !viewer.output.empty() || viewer.due > now) continue;
      const std::optional<LiveFrame> frame = collector.Collect(viewer.detail);
      if (!frame) return;
      const auto cost = std::chrono::duration_cast<Clock::duration>(frame->engine.cost);
      next_snapshot = now + std::max<Clock::duration>(kMinInterval, kCostFactor * cost);
      const std::string payload = DumpJson(LiveFrameJson(*frame));
      if (payload.size() > kMaxFrameBytes) continue;
      viewer.output = EncodeLiveMessage(LiveMessageType::kFrame, payload);
      viewer.last_progress = now;
      viewer.due = now + viewer.interval;
      if (viewer.wants_one) viewer.watches = false;
      Send(viewer);
    }
  }

  static void Send(Viewer& viewer) {
    while (!viewer.output.empty()) {
      const ssize_t num_sent = send(viewer.fd.get(), viewer.output.data(), viewer.output.size(), MSG_NOSIGNAL);
      if (num_sent < 0 && errno == EINTR) continue;
      if (num_sent < 0 && errno == EAGAIN) return;
      if (num_sent <= 0) {
        viewer.is_gone = true;
        return;
      }
      viewer.output.erase(0, static_cast<size_t>(num_sent));
      viewer.last_progress = Clock::now();
    }
  }

  void Clean() {
    const Clock::time_point limit = Clock::now() - kPatience;
    std::erase_if(viewers, [limit](const Viewer& viewer) {
      const bool waits = !viewer.output.empty() || !viewer.watches;
      return viewer.is_gone || (waits && viewer.last_progress < limit);
    });
  }

  const LiveSource& source;
  std::string path;
  tokenizer::UniqueFd listen_fd;
  EventFd stop;
  LiveCollector collector;
  std::vector<Viewer> viewers;
  bool snapshot_requested = false;
  Clock::time_point next_snapshot{};
  Clock::time_point next_accept{};
  std::thread thread;
};

std::unique_ptr<LiveServer> LiveServer::Start(const LiveSource& source, const std::string& directory) {
  std::string path;
  bool is_listening = false;
  try {
    RemoveStaleSockets(directory);
    tokenizer::UniqueFd fd;
    for (int i = 1; i <= 9 && !fd.valid(); ++i) {
      const std::string number = i == 1 ? "" : "-" + std::to_string(i);
      path = directory + "/" + std::to_string(getpid()) + number + ".sock";
      fd = tokenizer::UniqueFd(ListenLiveSocket(path));
      if (!fd.valid() && errno != EADDRINUSE) return nullptr;
    }
    if (!fd.valid()) return nullptr;
    is_listening = true;
    // The thread starts last, in an object whose destructor joins it: an exception between the start of a thread and
    // its join would end the process.
    std::unique_ptr<LiveServer> server(new LiveServer(std::make_unique<Impl>(source, path, std::move(fd))));
    server->StartThread();
    return server;
  } catch (const std::exception&) {
    if (is_listening) unlink(path.c_str());
    return nullptr;
  }
}

LiveServer::LiveServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

void LiveServer::StartThread() {
  const BlockSignals block_signals;
  impl_->thread = std::thread([running = impl_.get()] {
    pthread_setname_np(pthread_self(), "live-server");
    try {
      running->Run();
    } catch (const std::exception&) {
      // Out of memory. The process continues without viewers.
      running->viewers.clear();
      running->listen_fd = tokenizer::UniqueFd();
    }
  });
}

LiveServer::~LiveServer() {
  // Unlink first, so that no viewer connects to a process that ends.
  unlink(impl_->path.c_str());
  if (!impl_->thread.joinable()) return;  // it could not be started
  impl_->stop.Set();
  impl_->thread.join();
}

const std::string& LiveServer::path() const { return impl_->path; }

}  // namespace vllm::app
