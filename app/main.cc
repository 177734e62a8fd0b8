#include "app/commands/commands.h"

int main(int argc, char** argv) { return vllm::Main(argc, argv); }
