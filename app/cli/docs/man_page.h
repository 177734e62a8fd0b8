// The manual page vllmcli.1, generated from the tables of commands and flags and from the sections in man_page.cc. A
// pure function; any thread.
#pragma once

#include <string>

namespace vllm::app {

// Returns the page in roff format, with the man macros.
std::string ManPage();

}  // namespace vllm::app
