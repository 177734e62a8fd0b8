#include "app/terminal/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "engine/model_loader/mapped_file.h"

namespace vllm {
namespace {

TEST(SignalsDeathTest, AModelFileCutShortWhileItIsReadIsNamed) {
  const std::string path = testing::TempDir() + "vllmcli_cut_\x1b_" + std::to_string(getpid());
  std::ofstream(path) << std::string(100000, 'x');
  const auto read_after_cut = [&path] {
    InstallSignals();
    const MappedFile file(path);
    if (truncate(path.c_str(), 10) != 0) _exit(99);
    volatile std::byte last = file.bytes().back();
    _exit(last == std::byte{0} ? 98 : 97);
  };
  EXPECT_EXIT(read_after_cut(), testing::ExitedWithCode(3), "x1b_.*: was cut short while it was in use");
  unlink(path.c_str());
}

}  // namespace
}  // namespace vllm
