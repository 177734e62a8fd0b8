// Finds the fenced code blocks of a Markdown text. A pure function; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

struct CodeBlock {
  std::string language;  // the first word of the info string; may be empty
  std::string text;      // every line ends with a line break
};

// Returns the blocks in their order, with the indentation of their list items and the marks of their block quotes
// removed and with U+FFFD in place of NUL. A fence that is not closed ends with the text. Returns none if memory runs
// out.
std::vector<CodeBlock> FindCodeBlocks(std::string_view markdown);

}  // namespace vllm::app
