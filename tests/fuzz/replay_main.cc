// Runs a fuzz target on every file in the directories given as arguments. Fails if there are no files.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  int num_files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      vllm::FuzzOne(bytes);
      ++num_files;
    }
  }
  std::printf("%d files\n", num_files);
  return num_files > 0 ? 0 : 1;
}
