// The manual page vllmcli.1, generated from the tables of commands and flags and from the sections in man_page.cc.
#pragma once

#include <string>

namespace vllm::app {

std::string ManPage();

}  // namespace vllm::app
