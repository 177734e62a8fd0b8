// Opens a text in the user's editor ($VISUAL, else $EDITOR, else vi). Main thread.
#pragma once

#include <optional>
#include <string>

namespace vllm::app {

// Writes `text` to a private temporary file (mode 0600), waits for the editor and returns the file's text, without one
// line break at its end. Prints an error and returns nullopt if that fails or the editor's exit status is not 0. The
// file is deleted.
// REQUIRES: the terminal has the modes in which a shell would start the editor.
std::optional<std::string> EditInEditor(const std::string& text);

}  // namespace vllm::app
