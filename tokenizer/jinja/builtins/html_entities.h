// Character references of HTML in a text, and what they stand for. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::jinja {

// Python's html.unescape, with numeric references and the named ones of HTML 4; other names stay as they are.
std::string UnescapeHtml(std::string_view text);

}  // namespace vllm::jinja
