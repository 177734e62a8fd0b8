// ReadTomlTree: parses TOML 1.0 with nested tables, as toml11 reads it, into JSON. The keys of a table keep the order
// of the file. app/cli/toml/toml_reader.h is for the configuration. A pure function; any thread.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace vllm::app {

// Returns an object. Dates become strings. Throws ConfigError `<where>: <why>` if the text is not valid TOML or UTF-8,
// or if tables and arrays are nested more than 32 levels deep.
nlohmann::ordered_json ReadTomlTree(const std::string& text, const std::string& where);

}  // namespace vllm::app
