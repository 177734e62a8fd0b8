#include "app/cli/new_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

void WriteNewFile(const std::string& path, const std::string& text) {
  const tokenizer::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const int error = fd.valid() ? tokenizer::WriteAll(fd.get(), text) : errno;
  if (error != 0) throw ResourceError("cannot write " + Escape(path) + ": " + std::strerror(error));
}

}  // namespace vllm::app
