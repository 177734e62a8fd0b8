// The manual page vllmcli.1, made from the tables and the sections written by hand here.
#pragma once

#include <string>

namespace vllm {

std::string ManPage();

}  // namespace vllm
