#include "app/terminal/terminal_modes.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace vllm::app {
namespace {

termios g_saved;
std::atomic<bool> g_have_saved{false};
std::atomic<bool> g_bracketed_paste{false};

void OnFatalSignal(int signal_number) {
  RestoreTerminal();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

void SaveTerminal() {
  if (tcgetattr(STDIN_FILENO, &g_saved) != 0) return;
  g_have_saved = true;
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGQUIT}) {
    struct sigaction action {};
    action.sa_handler = OnFatalSignal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    sigaction(signal_number, &action, nullptr);
  }
}

void RestoreTerminal() {
  if (g_bracketed_paste.exchange(false)) {
    constexpr std::string_view kOff = "\x1b[?2004l";
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, kOff.data(), kOff.size());
  }
  if (g_have_saved.load()) tcsetattr(STDIN_FILENO, TCSANOW, &g_saved);
}

void NoteBracketedPaste(bool on) { g_bracketed_paste = on; }

void EnterChatModes() {
  termios modes{};
  if (!g_have_saved.load() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  modes.c_lflag &= ~static_cast<tcflag_t>(ICANON);
  modes.c_cc[VMIN] = 1;
  modes.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

EchoOff::EchoOff() {
  termios modes{};
  if (!g_have_saved.load() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

EchoOff::~EchoOff() {
  termios modes{};
  if (!g_have_saved.load() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  if ((g_saved.c_lflag & ECHO) == 0) return;
  modes.c_lflag |= ECHO;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

}  // namespace vllm::app
