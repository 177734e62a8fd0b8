// Opens a file or a text in the user's editor ($VISUAL, else $EDITOR, else vi). Main thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace vllm::app {

// Polls `fd`, which may be -1, for at most `timeout_ms`. May serve other descriptors meanwhile.
using EditorWait = std::function<void(int fd, int timeout_ms)>;

// Runs the editor on a file and waits until it ends, with `wait` or, if that is null, with poll. Ctrl-C is for the
// editor, and Ctrl-Z stops the editor and this process together. The editor receives SIGHUP if a signal is to end this
// process or if `wait` throws. Returns why the editor failed, or "" if its exit status is 0.
// REQUIRES: the terminal has the modes in which a shell would start the editor.
std::string RunEditor(const std::string& path, const EditorWait& wait = nullptr);

// Writes `text` to a private temporary file (mode 0600), runs the editor on it and returns the file's text, without one
// line break at its end. Prints an error and returns nullopt if that fails. Deletes the file.
// REQUIRES: as for RunEditor.
std::optional<std::string> EditInEditor(const std::string& text, const EditorWait& wait);

}  // namespace vllm::app
