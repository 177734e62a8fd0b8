#include "kernels/threading/check.h"

#include <stdexcept>
#include <string>

namespace vllm::kernels {

void CheckFailed(const char* condition, const char* file, int line) {
  // The message contains only the name of the file, because its directory is a path on the build machine.
  const std::string path = file;
  throw std::logic_error(std::string("internal check failed: ") + condition + " (" +
                         path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line) + ")");
}

}  // namespace vllm::kernels
