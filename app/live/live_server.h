// LiveServer: publishes a LiveSource to the user's other processes through a Unix socket. Its thread polls the socket
// and the viewers, and asks the engine for snapshots only while a viewer is due. A viewer that is slow gets fewer
// frames, and one that stops reading is disconnected, so no viewer can hold up the engine. Owned by LivePublisher; the
// main thread constructs and destroys it.
#pragma once

#include <memory>
#include <string>

#include "app/live/live_source.h"

namespace vllm::app {

class LiveServer {
 public:
  static constexpr size_t kMaxViewers = 8;

  // Listens in `directory` as PID.sock and starts the thread. Returns null if that is impossible, for example if memory
  // or descriptors run out: a process that cannot be watched still does its work.
  static std::unique_ptr<LiveServer> Start(const LiveSource& source, const std::string& directory);
  // Ends the thread and removes the socket.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  const std::string& path() const;

 private:
  struct Impl;
  explicit LiveServer(std::unique_ptr<Impl> impl);
  void StartThread();

  std::unique_ptr<Impl> impl_;
};

}  // namespace vllm::app
