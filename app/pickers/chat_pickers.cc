#include "app/pickers/chat_pickers.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "app/chats/tree_rows.h"
#include "app/output/list_text.h"
#include "app/pickers/list_picker.h"
#include "app/screen/curses_screen.h"
#include "app/terminal/signals.h"

namespace vllm::app {
namespace {

constexpr int64_t kMaxListed = 10'000;

// Waits for a key, and serves the background meanwhile.
Key WaitKey(CursesScreen& screen, LLMEngine& engine, const BackgroundWork* background) {
  if (background == nullptr) return screen.WaitKey(std::chrono::hours(1));
  while (true) {
    const Key key = screen.WaitKey(std::chrono::hours(1), engine.OutputFd());
    if (key.code != KeyCode::kNone) return key;
    ServeBackground(engine, *background);
  }
}

// Shows the picker until the user chooses, leaves or deletes.
PickerEvent Run(CursesScreen& screen, ListPicker& picker, LLMEngine& engine, const BackgroundWork* background) {
  while (true) {
    screen.Show(picker.Draw(screen.rows(), screen.columns()));
    const Key key = WaitKey(screen, engine, background);
    if (key.code == KeyCode::kHangup) throw Interrupted(SIGHUP);
    const PickerEvent event = picker.HandleKey(key);
    if (event != PickerEvent::kNone) return event;
  }
}

// Returns "" or why the conversation was not deleted.
std::string DeleteChat(ChatStore& store, int64_t chat, int64_t current) {
  if (chat == current) return "This conversation is open here; /delete deletes it.";
  const bool is_locked = store.LockChat(chat);
  if (is_locked) {
    store.DeleteChat(chat);
    store.EraseDeleted();
    store.UnlockChat();
    // LockChat has ended the lock of the current conversation.
    if (current != 0) store.LockChat(current);
  }
  return is_locked ? "" : "This conversation is open in another chat.";
}

}  // namespace

bool CanPick() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && CanUseScreen(); }

std::optional<int64_t> PickMessage(const ChatTree& tree, LLMEngine& engine, const BackgroundWork* background) {
  CursesScreen screen;
  std::vector<PickerRow> rows;
  for (TreeRow& row : TreeRows(tree, screen.uses_utf8())) {
    rows.push_back({row.id, std::move(row.branch), std::move(row.text), LocalTimeText(row.created_ms), row.is_current,
                    !row.is_on_path});
  }
  ListPicker picker("All branches: choose an answer to continue it, a question to change it", std::move(rows),
                    tree.current_id(), /*can_delete=*/false);
  if (Run(screen, picker, engine, background) != PickerEvent::kChosen) return std::nullopt;
  return picker.selected();
}

std::optional<int64_t> PickChat(ChatStore& store, int64_t current, LLMEngine& engine,
                                const BackgroundWork* background) {
  std::vector<PickerRow> rows;
  for (const ChatSummary& chat : store.List(kMaxListed)) {
    const std::string title = FirstLine(chat.title, 200);
    rows.push_back({chat.id, "", std::to_string(chat.id) + "  " + (title.empty() ? "(no title)" : title),
                    std::to_string(chat.num_messages) + " messages  " + LocalTimeText(chat.updated_ms),
                    chat.id == current, false});
  }
  ListPicker picker("Stored conversations", std::move(rows), current, /*can_delete=*/true);
  CursesScreen screen;
  while (true) {
    const PickerEvent event = Run(screen, picker, engine, background);
    if (event == PickerEvent::kLeft) return std::nullopt;
    if (event == PickerEvent::kChosen) return picker.selected();
    const int64_t chat = picker.selected();
    std::string message = DeleteChat(store, chat, current);
    if (message.empty()) picker.Remove(chat);
    picker.SetMessage(std::move(message));
  }
}

}  // namespace vllm::app
