#include "app/live/live_publisher.h"

#include <utility>

#include "app/live/live_directory.h"

namespace vllm::app {

LivePublisher::LivePublisher(std::string command, std::string model, LLMEngine& engine,
                             std::shared_ptr<const tokenizer::Tokenizer> tokenizer, bool opens_socket)
    : source_(std::move(command), std::move(model), engine, std::move(tokenizer)) {
  if (!opens_socket) return;
  const std::string directory = MakeLiveDirectory();
  if (!directory.empty()) server_ = LiveServer::Start(source_, directory);
}

}  // namespace vllm::app
