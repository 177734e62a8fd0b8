#include "app/commands/commands.h"

int main(int argc, char** argv) { return vllm::app::Main(argc, argv); }
