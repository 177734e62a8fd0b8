#include "app/chats/tree_rows.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr int kMaxLevels = 12;
constexpr size_t kMaxTextBytes = 400;

// Returns the beginning of the first line that is not blank.
std::string Beginning(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  text = text.substr(first, kMaxTextBytes);
  std::string line(text.substr(0, text.find('\n')));
  // A character that was cut in the middle would be shown as U+FFFD.
  line.resize(line.size() - tokenizer::IncompleteUtf8Tail(line));
  return line;
}

std::string TextOf(const StoredMessage& message) {
  switch (message.role) {
    case ChatRole::kSystem:
      return "[system] " + Beginning(message.text);
    case ChatRole::kUser:
      return ">>> " + Beginning(message.text);
    case ChatRole::kAssistant:
      if (!message.tool_calls.empty() && message.text.empty()) return "[calls tools]";
      return message.text.empty() ? "[empty answer]" : Beginning(message.text);
    case ChatRole::kTool:
      return "[" + message.tool_name + "] " + Beginning(message.text);
  }
  return "";
}

// A message that is still to be drawn.
struct Pending {
  int64_t id;
  std::string line;   // the lines before its text
  std::string below;  // the lines of the rows below
  int level;
};

}  // namespace

std::vector<TreeRow> TreeRows(const ChatTree& tree, bool uses_utf8) {
  std::map<int64_t, std::vector<int64_t>> children;
  for (const StoredMessage& message : tree.AllMessages()) children[message.parent].push_back(message.id);
  std::set<int64_t> path;
  for (const StoredMessage* message : tree.PathTo(tree.current_id())) path.insert(message->id);

  const std::string tee = uses_utf8 ? "├─ " : "|- ";
  const std::string corner = uses_utf8 ? "└─ " : "`- ";
  const std::string bar = uses_utf8 ? "│  " : "|  ";
  std::vector<TreeRow> rows;
  std::vector<Pending> stack;  // the next one last
  const auto push_children = [&](int64_t id, const std::string& below, int level) {
    const auto found = children.find(id);
    if (found == children.end()) return;
    const std::vector<int64_t>& ids = found->second;
    for (size_t i = ids.size(); i-- > 0;) {
      if (ids.size() == 1 || level == kMaxLevels) {
        stack.push_back({ids[i], below, below, level});
      } else {
        const bool is_last = i + 1 == ids.size();
        stack.push_back({ids[i], below + (is_last ? corner : tee), below + (is_last ? "   " : bar), level + 1});
      }
    }
  };
  push_children(0, "", 0);
  while (!stack.empty()) {
    Pending next = std::move(stack.back());
    stack.pop_back();
    const StoredMessage& message = *tree.Find(next.id);
    rows.push_back({next.id, std::move(next.line), TextOf(message), message.created_ms, next.id == tree.current_id(),
                    path.contains(next.id)});
    push_children(next.id, next.below, next.level);
  }
  return rows;
}

}  // namespace vllm::app
