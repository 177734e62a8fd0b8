// Reads the small JSON files of a model directory, with a message that names the field where reading failed.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vllm {

inline constexpr int kMaxJsonDepth = 64;

// `what` opens every message: "config.json /models/x". Throws ModelError when the file is missing, not regular or
// larger than max_bytes.
std::string ReadTextFile(const std::string& path, size_t max_bytes, const std::string& what);

// Throws ModelError for anything that is not one JSON value, for nesting beyond kMaxJsonDepth and for numbers that no
// double holds. Of a repeated key the last counts, as in Python, and NaN, Infinity and -Infinity are values as
// Python writes them.
nlohmann::json ParseJson(std::string_view text, const std::string& what);

}  // namespace vllm
