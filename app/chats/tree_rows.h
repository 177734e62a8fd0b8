// TreeRows: the messages of a conversation as rows, one for each, with the branches drawn as a tree. A pure function;
// any thread.
//
//   >>> first question
//   the answer
//   ├─ >>> a question
//   │  its answer
//   └─ >>> another version of the question
//      its answer
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/chats/chat_tree.h"

namespace vllm::app {

struct TreeRow {
  int64_t id = 0;
  std::string branch;  // the lines of the tree; empty until the first branch
  std::string text;    // the beginning of the message's first line; ">>> " marks a question, "[system] " the system's
  int64_t created_ms = 0;
  bool is_current = false;
  bool is_on_path = false;  // the message is the current one or leads to it
};

// Returns the rows in the order of the tree, siblings from the oldest to the newest. Draws the lines with ASCII
// characters unless `uses_utf8`. Lines deeper than 12 levels of branches are not indented further.
std::vector<TreeRow> TreeRows(const ChatTree& tree, bool uses_utf8);

}  // namespace vllm::app
