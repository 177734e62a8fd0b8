// Prepares Markdown for md4c. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

// Returns `source` with backslashes added where md4c would hide text: before the brackets of \(math\) and \[math\] and
// the punctuation between them, and before link reference definitions. Adds dashes to the second line of tables.
// `added` receives the offsets of the added characters in the result, in ascending order.
std::string EscapeForMarkdown(std::string_view source, std::vector<size_t>& added);

// Returns true if a line of `source` begins more block quotes or lists inside each other than md4c should see.
bool NestsTooDeep(std::string_view source);

}  // namespace vllm::app
