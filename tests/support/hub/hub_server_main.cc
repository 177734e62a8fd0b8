// Serves a directory as the Hugging Face hub does, to try clients by hand:
//
//   hub_server DIRECTORY [PORT]
// DIRECTORY contains repositories as OWNER/NAME/files. They are read into memory once. Prints the value for
// HF_ENDPOINT, runs until its standard input ends, and then prints the requests that it received.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "tests/support/hub/hub_server.h"

namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> FilesIn(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), directory).string()] =
        std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || !fs::is_directory(argv[1])) {
    std::cerr << "usage: hub_server DIRECTORY [PORT]\n";
    return 2;
  }
  vllm::testing_support::HubServerOptions options;
  if (argc == 3) options.http.port = std::atoi(argv[2]);
  vllm::testing_support::HubServer server(options);
  for (const auto& owner : fs::directory_iterator(argv[1])) {
    if (!owner.is_directory()) continue;
    for (const auto& repository : fs::directory_iterator(owner.path())) {
      if (!repository.is_directory()) continue;
      const std::string id = fs::relative(repository.path(), argv[1]).string();
      server.AddRepository(vllm::testing_support::MakeRepository(id, FilesIn(repository.path())));
    }
  }
  std::cout << server.endpoint() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
  for (const std::string& request : server.Requests()) std::cout << request << "\n";
  return 0;
}
