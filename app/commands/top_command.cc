#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/live/live_connection.h"
#include "app/live/live_directory.h"
#include "app/live/live_frame.h"
#include "app/live/view/live_viewer.h"
#include "app/output/json_text.h"
#include "app/screen/curses_screen.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr std::chrono::milliseconds kViewInterval{250};

std::optional<pid_t> PidArgument(const Settings& settings) {
  if (settings.arguments.empty()) return std::nullopt;
  const std::string& text = settings.arguments[0];
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (settings.arguments.size() > 1) throw ConfigError("top: expects at most one process id");
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0) {
    throw ConfigError("top: not a process id (" + text + ")");
  }
  return pid;
}

std::chrono::milliseconds Interval(const Settings& settings) {
  const std::optional<double> seconds = settings.Number("interval");
  if (!seconds) return std::chrono::milliseconds(0);
  if (!(*seconds >= 0.1 && *seconds <= 3600)) throw ConfigError("--interval: must be from 0.1 to 3600 seconds");
  return std::chrono::milliseconds(std::llround(*seconds * 1000));
}

// Connects to the first of the processes that accepts. Returns null if none does.
std::unique_ptr<SocketConnection> Connect(const std::vector<LiveSocket>& sockets, std::chrono::milliseconds interval) {
  for (const LiveSocket& socket : sockets) {
    try {
      return std::make_unique<SocketConnection>(socket, interval);
    } catch (const ResourceError&) {
      // The process has ended without removing its socket, or has too many viewers.
    }
  }
  return nullptr;
}

// Connects again after `lost` has thrown: to the same process, or to the newest one. Leaves out the sockets at the
// paths `unusable`. Returns null if there is no process.
std::unique_ptr<SocketConnection> Reconnect(const SocketConnection& lost, const std::set<std::string>& unusable) {
  std::vector<LiveSocket> sockets = ListLiveSockets();
  std::erase_if(sockets, [&unusable](const LiveSocket& socket) { return unusable.contains(socket.path); });
  std::stable_partition(sockets.begin(), sockets.end(),
                        [&lost](const LiveSocket& socket) { return socket.path == lost.socket().path; });
  return Connect(sockets, kViewInterval);
}

int PrintNoProcess(std::optional<pid_t> pid) {
  if (pid) {
    PrintError("top: process " + std::to_string(*pid) +
               ": not a running vllmcli of this user; without a process id, top shows the newest one");
  } else {
    PrintError("top: no vllmcli runs a model for this user; start one, for example vllmcli chat, and run top again");
  }
  return 1;
}

// Prints one frame, or with an interval frames until the process ends.
int PrintJson(SocketConnection& connection, bool repeats) {
  bool printed = false;
  while (true) {
    std::array<pollfd, 3> fds = {{{SignalFd(), POLLIN, 0}, {connection.fd(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}}};
    poll(fds.data(), fds.size(), -1);
    ThrowIfInterrupted();
    if ((fds[2].revents & POLLERR) != 0) throw OutputClosed("writing standard output: the reader has closed it");
    std::optional<LiveFrame> frame;
    try {
      frame = connection.Receive();
    } catch (const ResourceError&) {
      if (printed && connection.was_closed()) return 0;
      throw;
    }
    if (!frame) continue;
    StandardOutput().WriteLine(SafeJson(DumpJson(LiveFrameJson(*frame))));
    printed = true;
    if (!repeats) return 0;
  }
}

int ShowView(std::unique_ptr<SocketConnection> connection) {
  std::string end;
  std::set<std::string> unusable;  // paths of sockets
  {
    LiveViewerOptions options;
    options.list_processes = ListLiveSockets;
    LiveViewer viewer(*connection, std::move(options));
    while (true) {
      std::unique_ptr<SocketConnection> next;
      try {
        const std::optional<LiveSocket> chosen = viewer.Run();
        if (!chosen) {
          if (viewer.signal_number() != 0) throw Interrupted(viewer.signal_number());
          return 0;
        }
        next = Connect({*chosen}, kViewInterval);
        if (next == nullptr) continue;  // the process has ended; the view still shows the list
      } catch (const ResourceError& error) {
        if (!connection->was_closed()) unusable.insert(connection->socket().path);
        next = Reconnect(*connection, unusable);
        if (next == nullptr) {
          end = error.what();
          break;
        }
      }
      viewer.Connect(*next);
      connection = std::move(next);
    }
  }
  if (!connection->was_closed()) throw ResourceError(end);
  PrintStatus(end);
  return 0;
}

}  // namespace

int TopCommand(const Settings& settings) {
  const std::optional<pid_t> pid = PidArgument(settings);
  const std::chrono::milliseconds interval = Interval(settings);
  const bool is_json = settings.Switch("json");
  if (!is_json && interval.count() > 0) throw ConfigError("--interval: only with --json");
  if (!is_json && (isatty(STDOUT_FILENO) != 1 || !CanUseScreen())) {
    throw ConfigError("top: needs a terminal; --json prints the same as JSON");
  }
  EnterMainLoop();
  if (const std::string directory = MakeLiveDirectory(); !directory.empty()) RemoveStaleSockets(directory);
  std::vector<LiveSocket> sockets = ListLiveSockets();
  if (pid) std::erase_if(sockets, [pid](const LiveSocket& socket) { return socket.pid != *pid; });
  std::unique_ptr<SocketConnection> connection = Connect(sockets, is_json ? interval : kViewInterval);
  if (connection == nullptr) return PrintNoProcess(pid);
  if (is_json) return PrintJson(*connection, interval.count() > 0);
  return ShowView(std::move(connection));
}

}  // namespace vllm::app
