// Glob patterns as of Python's fnmatch, which huggingface_hub uses: '*' matches any bytes, also '/', '?' one byte, and
// [abc], [a-z] and [!abc] one byte of a set. Pure function; any thread.
#pragma once

#include <string_view>

namespace vllm::app {

// Returns true if `pattern` matches all of `text`. A pattern that ends with '/' matches everything below that
// directory. Takes O(size of pattern * size of text) time.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace vllm::app
