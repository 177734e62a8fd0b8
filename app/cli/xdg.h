// The program's directories, according to the XDG Base Directory Specification, and private files and directories. A
// relative path in a variable is ignored, as the specification requires. The functions read the environment; any thread
// may call them as long as no thread changes it.
#pragma once

#include <string>

namespace vllm::app {

// Each returns the path in the comment, or an empty string if neither the variable nor HOME holds an absolute path.
std::string ConfigHome();  // $XDG_CONFIG_HOME/vllmcli or ~/.config/vllmcli
std::string StateHome();   // $XDG_STATE_HOME/vllmcli or ~/.local/state/vllmcli
std::string CacheHome();   // $XDG_CACHE_HOME/vllmcli or ~/.cache/vllmcli
std::string DataHome();    // $XDG_DATA_HOME/vllmcli or ~/.local/share/vllmcli

// Creates `path` and its missing parents with mode 0700. Returns false and sets errno if one of them cannot be
// created or `path` is not a directory.
bool MakePrivateDirectory(const std::string& path);
// Writes a new file with mode 0600. Throws ResourceError `cannot write <path>: <why>`, also if the file exists.
void WriteNewFile(const std::string& path, const std::string& text);

}  // namespace vllm::app
