#include "kernels/threading/check.h"

#include <stdexcept>
#include <string>

namespace vllm {

void CheckFailed(const char* condition, const char* file, int line) {
  // The file's name alone: the path is that of the machine that built the program.
  const std::string path = file;
  throw std::logic_error(std::string("internal check failed: ") + condition + " (" +
                         path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line) + ")");
}

}  // namespace vllm
