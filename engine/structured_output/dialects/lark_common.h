// The terminals of Lark's library `common`. Pure function; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace vllm {

// Returns the pattern of a terminal, in the syntax of Rust, or nullopt.
std::optional<std::string_view> CommonTerminal(std::string_view name);

}  // namespace vllm
