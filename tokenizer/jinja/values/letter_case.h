// Upper and lower case of single code points (simple mapping of UnicodeData.txt for the scripts that have case).
// Pure functions, any thread.
#pragma once

namespace vllm::jinja {

char32_t UpperOf(char32_t code_point);
char32_t LowerOf(char32_t code_point);

}  // namespace vllm::jinja
