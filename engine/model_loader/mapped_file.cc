#include "engine/model_loader/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/config/errors.h"
#include "engine/model_loader/escape.h"

namespace vllm {
namespace {

[[noreturn]] void Fail(const std::string& path, const std::string& why) {
  throw ModelError("tensor file " + Escape(path) + ": " + why);
}

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a FIFO that somebody put in the folder must not wait for its writer.
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) Fail(path, std::strerror(errno));
  struct stat status;
  if (fstat(file.fd, &status) != 0) Fail(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) Fail(path, "not a regular file");
  if (status.st_size == 0) return;
  size_t size = static_cast<size_t>(status.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) Fail(path, std::string("cannot be mapped: ") + std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace vllm
