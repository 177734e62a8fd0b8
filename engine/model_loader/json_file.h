// Reads the JSON files of a model directory, such as config.json. Most syntax errors name the last key that was read.
// Pure functions of the files; any thread.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vllm {

inline constexpr int kMaxJsonDepth = 64;

// Returns the contents of the file. `what`, such as "config.json /models/x", starts every error message. Throws
// ModelError if the file cannot be read, is not a regular file or is larger than max_bytes. Throws ResourceError if the
// system runs out of a resource, such as file descriptors.
std::string ReadTextFile(const std::string& path, size_t max_bytes, const std::string& what);

// Parses one JSON value. Throws ModelError if `text` is anything else, is nested deeper than kMaxJsonDepth, or contains
// a number outside the range of double. Like Python's json module, keeps the last value of a repeated key and accepts
// NaN, Infinity and -Infinity.
nlohmann::json ParseJson(std::string_view text, const std::string& what);

}  // namespace vllm
