// LiveViewer: the live view on the terminal. It receives frames from a LiveConnection, handles keys and draws. Two ways
// to use it: Run shows the view until the user leaves; a program with its own loop calls Update from time to time and
// polls KeyFd(). Owned by a command; main thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/live/live_connection.h"
#include "app/live/view/live_history.h"
#include "app/live/view/live_view.h"
#include "app/screen/curses_screen.h"

namespace vllm::app {

struct LiveViewerOptions {
  // If not empty, leaving asks this question first. Ctrl-C leaves without asking.
  std::string leave_question = {};
  // Returns the processes to choose from; unset: only one process can be shown.
  std::function<std::vector<LiveSocket>()> list_processes = {};
  // Called about every 100 ms while Run waits; may be unset.
  std::function<void()> on_tick = {};
  // on_tick is also called when this descriptor is readable; -1: none.
  int tick_fd = -1;
};

// Handles keys and holds what the view shows, without a terminal.
class LiveController {
 public:
  explicit LiveController(LiveViewerOptions options) : options_(std::move(options)) {}

  // Takes a new frame from the connection, if there is one. Returns true if the view has changed. Throws ResourceError.
  bool Receive(LiveConnection& connection);
  // Handles a key. Throws ResourceError if the connection is lost.
  void Handle(const Key& key, LiveConnection& connection);
  CellGrid Draw(const LiveViewSize& size) const;

  bool leaves() const { return leaves_; }
  // Returns the signal that ended the view: SIGINT after Ctrl-C, SIGHUP if the terminal is gone, else 0.
  int signal_number() const { return signal_number_; }
  // Returns the process that the user has chosen, once.
  std::optional<LiveSocket> TakeChosenProcess() { return std::exchange(chosen_, std::nullopt); }
  // Forgets the frames, because the next ones come from another process.
  void Reset();

 private:
  void HandleMain(const Key& key, LiveConnection& connection);
  void HandleProcesses(const Key& key);
  void Answer(const Key& key, LiveConnection& connection);
  void MoveSelection(int64_t distance);
  const RequestSnapshot* Selected() const;
  void OpenProcesses();

  enum class Question : uint8_t { kNone, kLeave, kAbort };

  LiveViewerOptions options_;
  std::optional<LiveFrame> frame_;
  LiveHistory history_;
  LiveViewState state_;
  Question question_ = Question::kNone;
  RequestId abort_id_ = 0;
  std::vector<LiveSocket> sockets_;
  std::optional<LiveSocket> chosen_;
  std::chrono::steady_clock::time_point last_frame_time_ = std::chrono::steady_clock::now();
  bool leaves_ = false;
  int signal_number_ = 0;
};

class LiveViewer {
 public:
  // Enters the alternate screen. Borrows the connection. Throws ResourceError.
  LiveViewer(LiveConnection& connection, LiveViewerOptions options);

  // Shows the view until the user leaves. Returns the process that the user has chosen, or nullopt. Throws
  // ResourceError if the connection is lost, and Interrupted.
  std::optional<LiveSocket> Run();
  // Replaces the connection.
  void Connect(LiveConnection& connection);

  // Handles waiting keys and draws if something has changed or a quarter of a second has passed. Never waits. Returns
  // false once the user leaves. Throws like Run.
  bool Update();
  int KeyFd() const { return screen_.KeyFd(); }
  int signal_number() const { return controller_.signal_number(); }

 private:
  void Draw();

  LiveConnection* connection_;
  std::function<void()> on_tick_;
  int tick_fd_;
  LiveController controller_;
  CursesScreen screen_;
  std::chrono::steady_clock::time_point next_draw_{};
};

}  // namespace vllm::app
