// Edits one key at the top of a TOML file without changing anything else: other keys, comments, order, indentation and
// line breaks stay as the user wrote them. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::app {

// Returns `text` with the top-level key `key` set to the string `value`. An existing value is replaced where it is. A
// new key gets a line after the other top-level keys, or before the first table. Throws ConfigError: that of ReadToml
// if `text` cannot be parsed (`name` is its file), or `<name>: <key>: not valid UTF-8`.
std::string SetTomlString(const std::string& text, std::string_view key, std::string_view value,
                          const std::string& name);

// Returns `text` without the top-level key `key`. A comment after its value stays, on its own line. Returns `text` if
// there is no such key. Throws the ConfigError of ReadToml.
std::string RemoveTomlKey(const std::string& text, std::string_view key, const std::string& name);

}  // namespace vllm::app
