// The typed forms of a message with several lines. Pure functions; any thread.
//
// A draft that begins with """ is a block: Enter inserts line breaks until a second """ has been typed. A draft that is
// a block from its beginning to its end is sent without the two markers and the line breaks next to them. Text that
// contains pairs of """, such as pasted Python, is sent unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm::app {

// Returns true if `draft` begins with """ and has an odd number of them.
bool HasOpenBlock(std::string_view draft);

// Returns the message of a draft: the content of the block, if the draft is one, else the draft.
std::string MessageOfDraft(std::string_view draft);

// Returns true if the line of `draft` that ends at `cursor` ends with an odd number of backslashes, so that Enter there
// replaces the last one by a line break.
bool ContinuesAfterBackslash(std::string_view draft, size_t cursor);

}  // namespace vllm::app
