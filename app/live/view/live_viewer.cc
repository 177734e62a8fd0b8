#include "app/live/view/live_viewer.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace vllm::app {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kDrawInterval{250};

bool IsLeave(const Key& key) {
  return key.Is('q') || key.Is('Q') || key.code == KeyCode::kEscape || key.code == KeyCode::kF10;
}

bool IsHelp(const Key& key) { return key.Is('h') || key.Is('?') || key.code == KeyCode::kF1; }

}  // namespace

bool LiveController::Receive(LiveConnection& connection) {
  const auto now = std::chrono::steady_clock::now();
  std::optional<LiveFrame> frame = connection.Receive();
  state_.silence = frame ? Seconds(0) : Seconds(now - last_frame_time_);
  state_.can_switch_process = options_.list_processes != nullptr;
  if (!frame) return false;
  last_frame_time_ = now;
  history_.Add(frame->engine);
  frame_ = std::move(frame);
  if (Selected() == nullptr && state_.panel == LivePanel::kMain && question_ == Question::kNone) {
    const std::vector<size_t> order = SortedRequests(*frame_, state_.sort);
    state_.selected = order.empty() ? 0 : frame_->engine.requests[order.front()].request_id;
  }
  return true;
}

void LiveController::Reset() {
  frame_.reset();
  history_ = {};
  state_ = {};
  question_ = Question::kNone;
  last_frame_time_ = std::chrono::steady_clock::now();
}

CellGrid LiveController::Draw(const LiveViewSize& size) const {
  return DrawLiveView(frame_ ? &*frame_ : nullptr, history_, state_, size);
}

const RequestSnapshot* LiveController::Selected() const {
  if (!frame_) return nullptr;
  for (const RequestSnapshot& request : frame_->engine.requests) {
    if (request.request_id == state_.selected) return &request;
  }
  return nullptr;
}

void LiveController::MoveSelection(int64_t distance) {
  if (!frame_ || frame_->engine.requests.empty()) return;
  const std::vector<size_t> order = SortedRequests(*frame_, state_.sort);
  int64_t position = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (frame_->engine.requests[order[i]].request_id == state_.selected) position = static_cast<int64_t>(i);
  }
  position = std::clamp<int64_t>(position + distance, 0, static_cast<int64_t>(order.size()) - 1);
  state_.selected = frame_->engine.requests[order[static_cast<size_t>(position)]].request_id;
}

void LiveController::OpenProcesses() {
  sockets_ = options_.list_processes();
  state_.processes.clear();
  state_.process_index = 0;
  for (const LiveSocket& socket : sockets_) {
    const bool is_shown = frame_ && frame_->process.pid == socket.pid;
    if (is_shown) state_.process_index = state_.processes.size();
    state_.processes.push_back(std::to_string(socket.pid) + "  " + socket.command_line);
  }
  state_.panel = LivePanel::kProcesses;
}

void LiveController::Answer(const Key& key, LiveConnection& connection) {
  const Question question = std::exchange(question_, Question::kNone);
  state_.question.clear();
  if (!key.Is('y') && !key.Is('Y')) return;
  if (question == Question::kLeave) leaves_ = true;
  if (question == Question::kAbort) {
    connection.AbortRequest(abort_id_);
    state_.message = "abort sent";
  }
}

void LiveController::Handle(const Key& key, LiveConnection& connection) {
  if (key.code == KeyCode::kNone || key.code == KeyCode::kResize || key.code == KeyCode::kRedraw) return;
  state_.message.clear();
  if (key.code == KeyCode::kInterrupt || key.code == KeyCode::kHangup) {
    signal_number_ = key.code == KeyCode::kHangup ? SIGHUP : SIGINT;
    leaves_ = true;
    return;
  }
  if (question_ != Question::kNone) return Answer(key, connection);
  if (state_.panel == LivePanel::kProcesses) return HandleProcesses(key);
  if (state_.panel == LivePanel::kDetail || state_.panel == LivePanel::kHelp) {
    if (IsLeave(key) || key.code == KeyCode::kEnter || IsHelp(key)) {
      if (state_.panel == LivePanel::kDetail) connection.SetDetail(0);
      state_.panel = LivePanel::kMain;
    }
    return;
  }
  HandleMain(key, connection);
}

void LiveController::HandleProcesses(const Key& key) {
  if (IsLeave(key) || key.code == KeyCode::kTab) {
    state_.panel = LivePanel::kMain;
  } else if (key.code == KeyCode::kUp || key.Is('k')) {
    state_.process_index -= state_.process_index > 0 ? 1 : 0;
  } else if (key.code == KeyCode::kDown || key.Is('j')) {
    state_.process_index += state_.process_index + 1 < state_.processes.size() ? 1 : 0;
  } else if (key.code == KeyCode::kEnter && state_.process_index < sockets_.size()) {
    chosen_ = sockets_[state_.process_index];
  }
}

void LiveController::HandleMain(const Key& key, LiveConnection& connection) {
  if (IsLeave(key)) {
    leaves_ = options_.leave_question.empty();
    if (leaves_) return;
    question_ = Question::kLeave;
    state_.question = options_.leave_question;
    return;
  }
  if (IsHelp(key)) state_.panel = LivePanel::kHelp;
  if (key.code == KeyCode::kTab && options_.list_processes) OpenProcesses();
  if (key.code == KeyCode::kUp) MoveSelection(-1);
  if (key.code == KeyCode::kDown || key.Is('j')) MoveSelection(1);
  if (key.code == KeyCode::kPageUp) MoveSelection(-10);
  if (key.code == KeyCode::kPageDown) MoveSelection(10);
  if (key.code == KeyCode::kHome) MoveSelection(-(int64_t{1} << 32));
  if (key.code == KeyCode::kEnd) MoveSelection(int64_t{1} << 32);
  if (key.Is('s') || key.code == KeyCode::kF6) {
    state_.sort = static_cast<LiveSort>((static_cast<int>(state_.sort) + 1) % kNumLiveSorts);
    state_.message = "sorted by " + std::string(LiveSortName(state_.sort));
  }
  if (key.Is('p') && frame_) {
    const bool paused = !frame_->engine.scheduler.admission_paused;
    connection.SetAdmissionPaused(paused);
    // Until the next frame, so that a second key press does the opposite.
    frame_->engine.scheduler.admission_paused = paused;
  }
  if (const RequestSnapshot* request = Selected()) {
    if (key.Is('k') || key.code == KeyCode::kF9) {
      question_ = Question::kAbort;
      abort_id_ = request->request_id;
      state_.question = "abort request " + request->external_req_id + "? y/n";
    }
    if (key.code == KeyCode::kEnter) {
      connection.SetDetail(request->request_id);
      state_.panel = LivePanel::kDetail;
    }
  }
}

LiveViewer::LiveViewer(LiveConnection& connection, LiveViewerOptions options)
    : connection_(&connection), on_tick_(options.on_tick), tick_fd_(options.tick_fd), controller_(std::move(options)) {}

void LiveViewer::Connect(LiveConnection& connection) {
  connection_ = &connection;
  controller_.Reset();
}

void LiveViewer::Draw() {
  screen_.Show(controller_.Draw({screen_.rows(), screen_.columns(), screen_.uses_utf8()}));
  next_draw_ = std::chrono::steady_clock::now() + kDrawInterval;
}

bool LiveViewer::Update() {
  bool changed = controller_.Receive(*connection_) || std::chrono::steady_clock::now() >= next_draw_;
  while (!controller_.leaves()) {
    const Key key = screen_.WaitKey(std::chrono::milliseconds(0));
    if (key.code == KeyCode::kNone) break;
    controller_.Handle(key, *connection_);
    changed = true;
  }
  if (changed) Draw();
  return !controller_.leaves();
}

std::optional<LiveSocket> LiveViewer::Run() {
  Draw();
  while (true) {
    const Key key = screen_.WaitKey(kTick, connection_->fd() >= 0 ? connection_->fd() : tick_fd_);
    controller_.Handle(key, *connection_);
    if (controller_.leaves()) return std::nullopt;
    if (std::optional<LiveSocket> chosen = controller_.TakeChosenProcess()) return chosen;
    if (on_tick_) on_tick_();
    const bool changed = controller_.Receive(*connection_) || key.code != KeyCode::kNone;
    if (changed || std::chrono::steady_clock::now() >= next_draw_) Draw();
  }
}

}  // namespace vllm::app
