#include "app/terminal/terminal_modes.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "app/terminal/styled_text.h"

namespace vllm::app {
namespace {

termios g_saved;
std::atomic<bool> g_have_saved{false};
std::atomic<bool> g_bracketed_paste{false};
// The full-screen view, if one is open. g_screen_modes are those of its terminal if it is not standard input.
std::atomic<int> g_screen_fd{-1};
std::atomic<int> g_screen_key_fd{-1};
termios g_screen_modes;
std::atomic<bool> g_unfinished_style{false};
size_t g_num_bytes_typed_before = 0;

void OnFatalSignal(int signal_number) {
  RestoreTerminal();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void CatchFatalSignals() {
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGQUIT}) {
    struct sigaction action {};
    action.sa_handler = OnFatalSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    sigaction(signal_number, &action, nullptr);
  }
}

}  // namespace

void SaveTerminal() {
  if (tcgetattr(STDIN_FILENO, &g_saved) != 0) return;
  g_have_saved = true;
  CatchFatalSignals();
}

void RestoreTerminal() {
  if (g_bracketed_paste.exchange(false)) {
    constexpr std::string_view kOff = "\x1b[?2004l";
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, kOff.data(), kOff.size());
  }
  if (const int fd = g_screen_fd.exchange(-1); fd >= 0) {
    // Leaves the alternate screen, shows the cursor, and resets the keypad, the attributes and the character set.
    constexpr std::string_view kLeave = "\x1b[?1049l\x1b[?25h\x1b[?1l\x1b>\x1b[0m\x1b(B";
    [[maybe_unused]] const ssize_t written = write(fd, kLeave.data(), kLeave.size());
    if (const int key_fd = g_screen_key_fd.load(); key_fd >= 0) tcsetattr(key_fd, TCSANOW, &g_screen_modes);
  }
  if (g_unfinished_style.exchange(false)) {
    [[maybe_unused]] const ssize_t written =
        write(STDOUT_FILENO, sequences::kRestore.data(), sequences::kRestore.size());
  }
  if (g_have_saved.load()) tcsetattr(STDIN_FILENO, TCSANOW, &g_saved);
}

void NoteScreen(int output_fd, int key_fd) {
  g_screen_fd = -1;
  g_screen_key_fd = -1;
  if (output_fd < 0) return;
  if (!g_have_saved.load() && tcgetattr(key_fd, &g_screen_modes) == 0) {
    CatchFatalSignals();
    g_screen_key_fd = key_fd;
  }
  g_screen_fd = output_fd;
}

void NoteBracketedPaste(bool on) { g_bracketed_paste = on; }

void NoteUnfinishedStyle(bool is_unfinished) { g_unfinished_style = is_unfinished; }

void EnterChatModes() {
  termios modes{};
  if (!g_have_saved.load() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  const bool enter_is_line_feed = (modes.c_iflag & ICRNL) != 0;
  modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  // On Ctrl-C, the kernel would first send the signal and then discard unread output, which may include the reply to
  // it.
  modes.c_lflag |= NOFLSH;
  modes.c_iflag &= ~static_cast<tcflag_t>(ICRNL);
  modes.c_cc[VMIN] = 1;
  modes.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
  int num_bytes = 0;
  if (enter_is_line_feed && ioctl(STDIN_FILENO, FIONREAD, &num_bytes) == 0) {
    g_num_bytes_typed_before = static_cast<size_t>(num_bytes);
  }
}

size_t TakeNumBytesTypedBefore() { return std::exchange(g_num_bytes_typed_before, 0); }

EchoOff::EchoOff() {
  termios modes{};
  if (!g_have_saved.load() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  was_on_ = (modes.c_lflag & ECHO) != 0;
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

EchoOff::~EchoOff() {
  termios modes{};
  if (!was_on_ || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  modes.c_lflag |= ECHO;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

}  // namespace vllm::app
