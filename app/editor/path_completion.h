// Completes the names of files. Reads directories; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/editor/completer.h"

namespace vllm::app {

// Paths are typed as one word: a backslash before a blank or a backslash makes it part of the path.
std::string EscapePath(std::string_view path);
std::string UnescapePath(std::string_view word);
// Returns `path` with a leading ~ or ~/ replaced by the home directory.
std::string ExpandHome(const std::string& path);
// Returns the path of a file that a word names: unescaped, with the home directory.
std::string TypedPath(std::string_view word);

// Returns `word` with its last part completed: the directories and regular files that begin with it, directories with a
// slash at the end, at most 1,000. Names that begin with a dot are offered only after a dot.
std::vector<CompletionChoice> PathChoices(std::string_view word);

}  // namespace vllm::app
