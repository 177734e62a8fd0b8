#include <string>
#include <vector>

#include "app/commands/commands.h"

int main(int argc, char** argv) { return vllm::Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)); }
