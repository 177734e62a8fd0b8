// The characters that HTML entities stand for, such as &lt; and &#955;. A pure function; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::app {

// Returns the character of `entity`, which begins with '&' and ends with ';', in UTF-8. It is as untrusted as the
// entity: &#27; is an escape character. Returns `entity` if it is unknown.
std::string DecodeEntity(std::string_view entity);

}  // namespace vllm::app
