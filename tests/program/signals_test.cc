#include "app/terminal/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "engine/model_loader/mapped_file.h"

namespace vllm::app {
namespace {

// Runs in a child process, with standard error redirected to `error_fd`. This is not a GoogleTest death test, because
// death tests call regcomp, and Oniguruma defines another function with that name.
[[noreturn]] void ReadAfterTruncate(const std::string& path, int error_fd) {
  dup2(error_fd, STDERR_FILENO);
  InstallSignals();
  const MappedFile file(path);
  if (truncate(path.c_str(), 10) != 0) _exit(99);
  volatile std::byte last = file.bytes().back();
  _exit(last == std::byte{0} ? 98 : 97);
}

TEST(SignalsTest, ModelFileTruncatedWhileInUseIsNamed) {
  const std::string path = testing::TempDir() + "vllmcli_cut_\x1b_" + std::to_string(getpid());
  std::ofstream(path) << std::string(100000, 'x');
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) ReadAfterTruncate(path, ends[1]);
  close(ends[1]);
  std::string error;
  std::array<char, 4096> buffer;
  for (ssize_t num_read; (num_read = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    error.append(buffer.data(), static_cast<size_t>(num_read));
  }
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status << " " << error;
  EXPECT_NE(error.find("vllmcli_cut_\\x1b_"), std::string::npos) << error;
  EXPECT_NE(error.find(": was truncated while in use\n"), std::string::npos) << error;
  unlink(path.c_str());
}

}  // namespace
}  // namespace vllm::app
