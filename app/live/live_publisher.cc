#include "app/live/live_publisher.h"

#include <utility>

#include "app/live/live_directory.h"
#include "kernels/threading/available_memory.h"

namespace vllm::app {

LivePublisher::LivePublisher(std::string command, std::string model, LLMEngine& engine,
                             std::shared_ptr<const tokenizer::Tokenizer> tokenizer, bool opens_socket)
    : source_(std::move(command), std::move(model), engine, std::move(tokenizer)) {
  // The stack of the server's thread would count against the limit, and requests could run out of memory.
  if (!opens_socket || kernels::AddressSpaceIsLimited()) return;
  const std::string directory = MakeLiveDirectory();
  if (!directory.empty()) server_ = LiveServer::Start(source_, directory);
}

}  // namespace vllm::app
