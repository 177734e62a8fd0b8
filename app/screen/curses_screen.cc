#include "app/screen/curses_screen.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <utility>

#include "app/terminal/color_policy.h"
#include "app/terminal/locale.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"

// After the standard headers, because curses.h defines macros with common names.
#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
#undef columns
#undef lines

namespace vllm::app {
namespace {

int OutputTerminal() {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (isatty(fd) == 1) return fd;
  }
  return -1;
}

// Returns a new descriptor, or -1.
int OpenKeys() {
  if (isatty(STDIN_FILENO) == 1) return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  return open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

FILE* OpenStream(int fd, const char* mode) {
  FILE* stream = fd < 0 ? nullptr : fdopen(fd, mode);
  if (stream == nullptr && fd >= 0) close(fd);
  return stream;
}

// The keys that a view may use. All others are kOther.
struct KnownKey {
  wint_t value;
  KeyCode code;
};
constexpr std::array<KnownKey, 14> kKnownKeys = {{
    {KEY_UP, KeyCode::kUp},
    {KEY_DOWN, KeyCode::kDown},
    {KEY_PPAGE, KeyCode::kPageUp},
    {KEY_NPAGE, KeyCode::kPageDown},
    {KEY_HOME, KeyCode::kHome},
    {KEY_END, KeyCode::kEnd},
    {KEY_ENTER, KeyCode::kEnter},
    {KEY_BACKSPACE, KeyCode::kBackspace},
    {KEY_DC, KeyCode::kDelete},
    {KEY_F(1), KeyCode::kF1},
    {KEY_F(3), KeyCode::kF3},
    {KEY_F(6), KeyCode::kF6},
    {KEY_F(9), KeyCode::kF9},
    {KEY_F(10), KeyCode::kF10},
}};

KeyCode CodeOf(wint_t value) {
  for (const KnownKey& known : kKnownKeys) {
    if (known.value == value) return known.code;
  }
  return KeyCode::kOther;
}

Key CharacterKey(wint_t value) {
  switch (value) {
    case L'\r':
    case L'\n':
      return {KeyCode::kEnter, 0};
    case L'\t':
      return {KeyCode::kTab, 0};
    case 27:
      return {KeyCode::kEscape, 0};
    case 8:
    case 127:
      return {KeyCode::kBackspace, 0};
    case 3:
      return {KeyCode::kInterrupt, 0};
    default:
      return {KeyCode::kCharacter, static_cast<char32_t>(value)};
  }
}

attr_t AttributesOf(const CellStyle& style, bool has_colors) {
  attr_t attributes = A_NORMAL;
  if (style.bold) attributes |= A_BOLD;
  if (style.dim) attributes |= A_DIM;
  if (style.reverse) attributes |= A_REVERSE;
  if (style.underline) attributes |= A_UNDERLINE;
  if (has_colors) attributes |= COLOR_PAIR(static_cast<int>(style.color));
  return attributes;
}

}  // namespace

bool CanUseScreen() {
  const int keys = OpenKeys();
  if (keys < 0) return false;
  close(keys);
  return TerminalHas(OutputTerminal(), "cup");
}

struct CursesScreen::Impl {
  FILE* output = nullptr;
  FILE* input = nullptr;
  SCREEN* screen = nullptr;
  TERMINAL* terminal_before = nullptr;
  int key_fd = -1;
  int output_fd = -1;
  bool uses_utf8 = false;
  bool has_colors = false;
  struct sigaction suspend_before {};

  void InstallHandlers() {
    sigaction(SIGTSTP, nullptr, &suspend_before);
    CatchSuspend();
    WindowChangeFd();  // before newterm, which installs a handler of SIGWINCH if there is none
  }

  void Close() {
    if (screen != nullptr) {
      endwin();
      delscreen(screen);
      screen = nullptr;
      // readline has its own terminal, which newterm replaced.
      set_curterm(terminal_before);
    }
    NoteScreen(-1, -1);
    if (input != nullptr) std::fclose(input);
    if (output != nullptr) std::fclose(output);
    sigaction(SIGTSTP, &suspend_before, nullptr);
  }

  void SetModes() const {
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    intrflush(stdscr, FALSE);
    curs_set(0);
  }

  // Takes the size from the terminal. Returns true if it has changed.
  bool UpdateSize() const {
    winsize size{};
    if (ioctl(output_fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return false;
    if (size.ws_row == LINES && size.ws_col == COLS) return false;
    resizeterm(size.ws_row, size.ws_col);
    clearok(curscr, TRUE);
    return true;
  }

  void Suspend() const {
    endwin();
    NoteScreen(-1, -1);
    RestoreTerminal();
    SuspendProcess();
    NoteScreen(output_fd, key_fd);
    SetModes();
    clearok(curscr, TRUE);
    refresh();
    UpdateSize();
  }
};

CursesScreen::CursesScreen() : impl_(std::make_unique<Impl>()) {
  impl_->InstallHandlers();
  impl_->uses_utf8 = SetCharacterLocale();
  impl_->output_fd = OutputTerminal();
  impl_->output = OpenStream(impl_->output_fd < 0 ? -1 : fcntl(impl_->output_fd, F_DUPFD_CLOEXEC, 3), "w");
  impl_->input = OpenStream(OpenKeys(), "r");
  if (impl_->output == nullptr || impl_->input == nullptr) {
    impl_->Close();
    throw ResourceError("opening the screen: there is no terminal");
  }
  impl_->key_fd = fileno(impl_->input);
  // From here on a signal or a crash leaves the alternate screen.
  NoteScreen(impl_->output_fd, impl_->key_fd);
  // A short delay, because Esc leaves the view. The default is a second.
  set_escdelay(25);
  impl_->terminal_before = set_curterm(nullptr);
  // Not initscr, which ends the program if the terminal is unknown.
  impl_->screen = newterm(nullptr, impl_->output, impl_->input);
  if (impl_->screen == nullptr) {
    set_curterm(impl_->terminal_before);
    impl_->Close();
    const char* name = std::getenv("TERM");
    throw ResourceError("opening the screen: unknown terminal type (TERM=" + std::string(name ? name : "") + ")");
  }
  set_term(impl_->screen);
  impl_->has_colors = MayColor(impl_->output_fd) && has_colors() && start_color() == OK && use_default_colors() == OK;
  if (impl_->has_colors) {
    constexpr std::array<short, 7> kColors = {-1,         COLOR_RED,     COLOR_GREEN, COLOR_YELLOW,
                                              COLOR_BLUE, COLOR_MAGENTA, COLOR_CYAN};
    for (size_t i = 1; i < kColors.size(); ++i) init_pair(static_cast<short>(i), kColors[i], -1);
  }
  impl_->SetModes();
}

CursesScreen::~CursesScreen() { impl_->Close(); }

int CursesScreen::rows() const { return std::max(1, LINES); }
int CursesScreen::columns() const { return std::max(1, COLS); }
bool CursesScreen::uses_utf8() const { return impl_->uses_utf8; }
int CursesScreen::KeyFd() const { return impl_->key_fd; }

void CursesScreen::Show(const CellGrid& grid) {
  impl_->UpdateSize();
  werase(stdscr);
  const int num_rows = std::min(grid.rows(), LINES);
  const int num_columns = std::min(grid.columns(), COLS);
  for (int row = 0; row < num_rows; ++row) {
    for (int column = 0; column < num_columns; ++column) {
      const Cell& cell = grid.At(row, column);
      if (cell.text.empty()) continue;
      const attr_t attributes = AttributesOf(cell.style, impl_->has_colors);
      if (cell.text == " " && attributes == A_NORMAL) continue;
      std::array<wchar_t, CCHARW_MAX + 1> wide{};
      std::mbstate_t state{};
      const char* bytes = cell.text.c_str();
      size_t length = std::mbsrtowcs(wide.data(), &bytes, CCHARW_MAX, &state);
      if (length == 0 || length == static_cast<size_t>(-1)) {
        wide = {L'?'};
      }
      cchar_t character{};
      const short pair = impl_->has_colors ? static_cast<short>(cell.style.color) : static_cast<short>(0);
      if (setcchar(&character, wide.data(), attributes, pair, nullptr) != OK) {
        // For example a cluster of several base characters, such as an emoji family.
        wide[1] = L'\0';
        if (setcchar(&character, wide.data(), attributes, pair, nullptr) != OK) continue;
      }
      mvadd_wch(row, column, &character);
    }
  }
  refresh();
}

Key CursesScreen::WaitKey(std::chrono::milliseconds timeout, int fd) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool is_first = true;
  while (true) {
    if (impl_->UpdateSize()) return {KeyCode::kResize, 0};
    wint_t value = 0;
    errno = 0;
    const int kind = get_wch(&value);
    if (kind == KEY_CODE_YES && value == KEY_RESIZE) return {KeyCode::kResize, 0};
    if (kind == KEY_CODE_YES) return {CodeOf(value), 0};
    if (kind == OK) return CharacterKey(value);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0 && !is_first) return {};
    is_first = false;
    std::array<pollfd, 4> fds = {
        {{impl_->key_fd, POLLIN, 0}, {SignalFd(), POLLIN, 0}, {WindowChangeFd(), POLLIN, 0}, {fd, POLLIN, 0}}};
    const int num_ready = poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (num_ready <= 0) continue;
    if (fds[2].revents != 0) TakeWindowChange();
    if (fds[1].revents != 0) {
      const int signal_number = TakeSignal();
      if (signal_number == SIGTSTP) {
        impl_->Suspend();
        return {KeyCode::kRedraw, 0};
      }
      if (signal_number == SIGINT) return {KeyCode::kInterrupt, 0};
      if (signal_number != 0) throw Interrupted(signal_number);
    }
    if ((fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return {KeyCode::kHangup, 0};
    if (fds[3].revents != 0 && fds[0].revents == 0) return {};
  }
}

}  // namespace vllm::app
