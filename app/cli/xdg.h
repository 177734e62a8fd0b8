// Where the program keeps its files, by the XDG base directory specification. A relative path in a variable is ignored,
// as the specification says.
#pragma once

#include <string>

namespace vllm {

// Empty when neither the variable nor HOME is set.
std::string ConfigHome();  // $XDG_CONFIG_HOME/vllmcli, ~/.config/vllmcli
std::string StateHome();   // $XDG_STATE_HOME/vllmcli, ~/.local/state/vllmcli
std::string CacheHome();   // $XDG_CACHE_HOME/vllmcli, ~/.cache/vllmcli
std::string DataHome();    // $XDG_DATA_HOME/vllmcli, ~/.local/share/vllmcli

// Makes `path` and its missing parents with mode 0700; false when that fails.
bool MakePrivateDirectory(const std::string& path);

}  // namespace vllm
