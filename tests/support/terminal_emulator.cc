#include "tests/support/terminal_emulator.h"

#include <vterm.h>

#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr uint32_t kRightHalf = 0xFFFFFFFF;  // the second cell of a character of two columns

std::string CellText(const VTermScreenCell& cell) {
  std::string text;
  for (const uint32_t c : cell.chars) {
    if (c == 0 || c == kRightHalf) break;
    tokenizer::AppendCodePoint(c, text);
  }
  return text;
}

// Appends the text of the cells to a row and cuts trailing blanks.
class RowText {
 public:
  void Add(const VTermScreenCell& cell) {
    if (cell.chars[0] == kRightHalf) return;
    const std::string text = CellText(cell);
    text_ += text.empty() ? " " : text;
    if (!text.empty() && text != " ") length_ = text_.size();
  }
  std::string Take() {
    text_.resize(length_);
    return std::move(text_);
  }

 private:
  std::string text_;
  size_t length_ = 0;
};

int ColorIndex(const VTermColor& color) {
  if (VTERM_COLOR_IS_DEFAULT_FG(&color) || VTERM_COLOR_IS_DEFAULT_BG(&color)) return -1;
  return VTERM_COLOR_IS_INDEXED(&color) ? color.indexed.idx : -2;
}

}  // namespace

struct TerminalEmulator::Impl {
  VTerm* terminal = nullptr;
  VTermScreen* screen = nullptr;
  std::vector<std::string> scrollback;
  TerminalState state;
  int num_bells = 0;
  std::vector<std::string> commands;
  std::string replies;

  static Impl& Of(void* user) { return *static_cast<Impl*>(user); }

  static int OnProperty(VTermProp property, VTermValue* value, void* user) {
    TerminalState& state = Of(user).state;
    switch (property) {
      case VTERM_PROP_CURSORVISIBLE:
        state.cursor_visible = value->boolean != 0;
        break;
      case VTERM_PROP_ALTSCREEN:
        state.alternate_screen = value->boolean != 0;
        break;
      case VTERM_PROP_TITLE:
        state.title = value->string;
        break;
      case VTERM_PROP_ICONNAME:
        state.icon_name = value->string;
        break;
      case VTERM_PROP_REVERSE:
        state.reverse_screen = value->boolean != 0;
        break;
      case VTERM_PROP_MOUSE:
        state.mouse = value->number != VTERM_PROP_MOUSE_NONE;
        break;
      default:
        break;
    }
    return 1;
  }
  static int OnBell(void* user) {
    ++Of(user).num_bells;
    return 1;
  }
  static int OnPushLine(int num_columns, const VTermScreenCell* cells, void* user) {
    RowText row;
    for (int i = 0; i < num_columns; ++i) row.Add(cells[i]);
    Of(user).scrollback.push_back(row.Take());
    return 1;
  }
  static int OnOsc(const char* command, size_t size, void* user) {
    Of(user).commands.push_back("OSC " + std::string(command, size));
    return 1;
  }
  static int OnDcs(const char* command, size_t size, void* user) {
    Of(user).commands.push_back("DCS " + std::string(command, size));
    return 1;
  }
  static int OnCsi(const char* leader, const long* arguments, int num_arguments, const char* intermediate, char command,
                   void* user) {
    std::string text = "CSI ";
    if (leader != nullptr) text += leader;
    for (int i = 0; i < num_arguments; ++i) {
      if (i > 0) text += ';';
      if (!CSI_ARG_IS_MISSING(arguments[i])) text += std::to_string(CSI_ARG(arguments[i]));
    }
    if (intermediate != nullptr) text += intermediate;
    Of(user).commands.push_back(text + command);
    return 1;
  }
  static void OnOutput(const char* bytes, size_t size, void* user) { Of(user).replies.append(bytes, size); }

  // libvterm does not report this mode, but marks pastes only if it is on.
  bool MarksPastes() {
    const std::string before = std::exchange(replies, "");
    vterm_keyboard_start_paste(terminal);
    return !std::exchange(replies, before).empty();
  }
};

TerminalEmulator::TerminalEmulator(int num_rows, int num_columns) : impl_(std::make_unique<Impl>()) {
  static const VTermScreenCallbacks kScreenCallbacks = {.damage = nullptr,
                                                        .moverect = nullptr,
                                                        .movecursor = nullptr,
                                                        .settermprop = Impl::OnProperty,
                                                        .bell = Impl::OnBell,
                                                        .resize = nullptr,
                                                        .sb_pushline = Impl::OnPushLine,
                                                        .sb_popline = nullptr};
  static const VTermParserCallbacks kUnknown = {.text = nullptr,
                                                .control = nullptr,
                                                .escape = nullptr,
                                                .csi = Impl::OnCsi,
                                                .osc = Impl::OnOsc,
                                                .dcs = Impl::OnDcs,
                                                .resize = nullptr};
  impl_->terminal = vterm_new(num_rows, num_columns);
  vterm_set_utf8(impl_->terminal, 1);
  vterm_output_set_callback(impl_->terminal, Impl::OnOutput, impl_.get());
  impl_->screen = vterm_obtain_screen(impl_->terminal);
  vterm_screen_set_callbacks(impl_->screen, &kScreenCallbacks, impl_.get());
  vterm_screen_set_unrecognised_fallbacks(impl_->screen, &kUnknown, impl_.get());
  vterm_screen_enable_altscreen(impl_->screen, 1);
  vterm_screen_reset(impl_->screen, 1);
}

TerminalEmulator::~TerminalEmulator() { vterm_free(impl_->terminal); }

void TerminalEmulator::Feed(std::string_view bytes) {
  vterm_input_write(impl_->terminal, bytes.data(), bytes.size());
  vterm_screen_flush_damage(impl_->screen);
}

void TerminalEmulator::Resize(int num_rows, int num_columns) {
  vterm_set_size(impl_->terminal, num_rows, num_columns);
  vterm_screen_flush_damage(impl_->screen);
}

int TerminalEmulator::num_rows() const {
  int num_rows = 0;
  int num_columns = 0;
  vterm_get_size(impl_->terminal, &num_rows, &num_columns);
  return num_rows;
}

int TerminalEmulator::num_columns() const {
  int num_rows = 0;
  int num_columns = 0;
  vterm_get_size(impl_->terminal, &num_rows, &num_columns);
  return num_columns;
}

std::string TerminalEmulator::Row(int row) const {
  RowText text;
  for (int column = 0; column < num_columns(); ++column) {
    VTermScreenCell cell{};
    if (vterm_screen_get_cell(impl_->screen, {row, column}, &cell) != 0) text.Add(cell);
  }
  return text.Take();
}

std::vector<std::string> TerminalEmulator::Rows() const {
  std::vector<std::string> rows;
  for (int row = 0; row < num_rows(); ++row) rows.push_back(Row(row));
  return rows;
}

std::string TerminalEmulator::Screen() const {
  std::string screen;
  size_t length = 0;
  for (const std::string& row : Rows()) {
    screen += row + "\n";
    if (!row.empty()) length = screen.size();
  }
  return screen.substr(0, length);
}

const std::vector<std::string>& TerminalEmulator::scrollback() const { return impl_->scrollback; }

std::vector<std::string> TerminalEmulator::AllRows() const {
  std::vector<std::string> rows = impl_->scrollback;
  for (std::string& row : Rows()) rows.push_back(std::move(row));
  while (!rows.empty() && rows.back().empty()) rows.pop_back();
  return rows;
}

ScreenCell TerminalEmulator::Cell(int row, int column) const {
  VTermScreenCell cell{};
  ScreenCell result;
  if (vterm_screen_get_cell(impl_->screen, {row, column}, &cell) == 0) return result;
  result.text = CellText(cell);
  result.columns = cell.width;
  result.bold = cell.attrs.bold != 0;
  result.italic = cell.attrs.italic != 0;
  result.underline = cell.attrs.underline != 0;
  result.reverse = cell.attrs.reverse != 0;
  result.strike = cell.attrs.strike != 0;
  result.color = ColorIndex(cell.fg);
  result.background = ColorIndex(cell.bg);
  return result;
}

ScreenCursor TerminalEmulator::cursor() const {
  VTermPos position{};
  vterm_state_get_cursorpos(vterm_obtain_state(impl_->terminal), &position);
  return {position.row, position.col};
}

TerminalState TerminalEmulator::state() const {
  TerminalState state = impl_->state;
  state.bracketed_paste = impl_->MarksPastes();
  return state;
}

int TerminalEmulator::num_bells() const { return impl_->num_bells; }

const std::vector<std::string>& TerminalEmulator::commands() const { return impl_->commands; }

std::string TerminalEmulator::TakeReplies() { return std::exchange(impl_->replies, ""); }

}  // namespace vllm::app
