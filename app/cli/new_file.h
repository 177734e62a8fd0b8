// Writes files that the user asks for. Any thread.
#pragma once

#include <string>

namespace vllm::app {

// Writes a new file with mode 0600. Throws ResourceError `cannot write <path>: <why>`, also if the file exists.
void WriteNewFile(const std::string& path, const std::string& text);

}  // namespace vllm::app
