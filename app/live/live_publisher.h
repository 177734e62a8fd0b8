// LivePublisher: makes a running engine visible to viewers in this process (/engine, batch --live) and, unless the user
// has turned that off, in other processes (vllmcli top). Owned by LoadedModel, which destroys it before the engine;
// main thread.
#pragma once

#include <memory>
#include <string>

#include "app/live/live_server.h"
#include "app/live/live_source.h"

namespace vllm::app {

class LivePublisher {
 public:
  // Borrows the engine, whose client must have a monitor. If the socket cannot be opened, only viewers in this process
  // see the engine.
  LivePublisher(std::string command, std::string model, LLMEngine& engine,
                std::shared_ptr<const tokenizer::Tokenizer> tokenizer, bool opens_socket);

  LiveSource& source() { return source_; }

 private:
  LiveSource source_;
  std::unique_ptr<LiveServer> server_;
};

}  // namespace vllm::app
