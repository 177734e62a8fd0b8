// Wraps texts at spaces. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm::app {

// Appends `text` and a line feed to `out`, wrapped at spaces to lines of at most `width` columns. A word is never
// broken, so a long one may exceed the width. The text starts at `column`; further lines are indented by `indent`
// spaces. REQUIRES: each byte of `text` takes one column.
void AppendWrapped(std::string_view text, size_t indent, size_t column, size_t width, std::string& out);

// Appends a table entry: `left` indented by two spaces, and `text` wrapped at column `indent`. If `left` is too long,
// `text` begins on the next line. If `width` leaves little room at `indent`, it is indented by six spaces there.
void AppendEntry(std::string_view left, size_t indent, std::string_view text, size_t width, std::string& out);

}  // namespace vllm::app
